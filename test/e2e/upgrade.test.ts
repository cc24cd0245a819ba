import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { copyProgram } from '../../tools/crash/programCopy.ts'
import { saysRunning, startDaemonProcess } from '../support/daemon.ts'
import { setup } from './faults/harness.ts'

/** What a later release may do to a ledger under running daemons: add columns, and a table. */
const inventedMigration = `
  alter table outboxd.submission add column invented integer not null default 7;
  alter table outboxd.request add column invented text;
  create table outboxd.invented (id bigint primary key)`

test('daemons of the release before send each record once, before, while and after `migrate` of the next release runs', async () => {
  await using harness = await setup()
  await using next = await copyProgram([])
  await writeFile(join(next.dir, 'migrations', '0002_invented.sql'), inventedMigration)
  await using one = await startDaemonProcess(harness.env)
  await using two = await startDaemonProcess(harness.env)
  const markers: string[] = []
  const insert = async () => {
    const marker = `record-${markers.length + 1}-`
    markers.push(marker)
    await harness.insert(marker, { key: `C${markers.length % 3}` })
  }

  for (let nth = 0; nth < 10; nth++) await insert()
  const migrated = next.start(['migrate'], harness.env).ended()
  let isMigrating = true
  void migrated.finally(() => {
    isMigrating = false
  })
  while (isMigrating) {
    await insert()
    await harness.becomes(markers.at(-1) ?? '', 'completed')
  }
  const { code, stderr } = await migrated
  expect(code, stderr).toBe(0)
  expect(stderr).toContain('applied 0002_invented')
  for (let nth = 0; nth < 10; nth++) await insert()
  for (const marker of markers)
    expect(await harness.becomes(marker, 'completed'), marker).toMatchObject({ posts: [200], effects: 1, attempt: 1 })

  // As in a rolling upgrade: the new daemon runs beside one of the old, and takes its place.
  await using successor = next.start(['run'], { ...harness.env, LOG_LEVEL: 'info' })
  await successor.line(saysRunning)
  expect((await one.stop()).code).toBe(0)
  await insert()
  expect(await harness.becomes(markers.at(-1) ?? '', 'completed')).toMatchObject({ effects: 1 })
  expect((await two.stop()).code).toBe(0)
  await insert()
  expect(await harness.becomes(markers.at(-1) ?? '', 'completed')).toMatchObject({ effects: 1 })
})

import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findOfHost } from '../../src/embedded/postgresServer.ts'

/** A host with programs of PostgreSQL in these folders. */
function host(...folders: string[]): string {
  const root = mkdtempSync(join(tmpdir(), 'host-'))
  for (const folder of folders) {
    mkdirSync(join(root, folder), { recursive: true })
    for (const program of ['initdb', 'postgres']) {
      writeFileSync(join(root, folder, program), '#!/bin/sh\n')
      chmodSync(join(root, folder, program), 0o755)
    }
  }
  return root
}

test('the newest of several versions is taken, by number', async () => {
  const root = host('9/bin', '15/bin', '17/bin')
  mkdirSync(join(root, '18/bin'), { recursive: true }) // only a client is installed
  expect(await findOfHost([`${root}/*/bin`], `${root}/9/bin`)).toEqual({
    initdb: `${root}/17/bin/initdb`,
    postgres: `${root}/17/bin/postgres`,
  })
})

test('without a version in the usual folders, that on the PATH is taken', async () => {
  const root = host('usr/bin')
  const { postgres } = await findOfHost([`${root}/lib/*/bin`], `relative:${root}/sbin:${root}/usr/bin`)
  expect(postgres).toBe(`${root}/usr/bin/postgres`)
})

test('a version that the program does not support is passed over, as Debian 11 has it', async () => {
  await expect(findOfHost([`${host('13/bin')}/*/bin`], '/nowhere')).rejects.toThrow('PostgreSQL 15 or newer')
})

test('a host without PostgreSQL is told in one line what to install', async () => {
  const finding = findOfHost([`${host()}/*/bin`], '/nowhere')
  await expect(finding).rejects.toThrow(/^this host has no programs of PostgreSQL .*apt-get install postgresql.*$/)
})

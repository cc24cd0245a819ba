import { expect, onTestFinished, test } from 'vitest'
import { loadMappings } from '../../src/mapping/loadMappings.ts'
import { dataFile, mappingFiles } from '../commands/fixture.ts'
import { openInstance } from '../support/daemonContext.ts'
import { openLedger } from '../support/ledger.ts'

const source = 'source: select id, note from sale where id = any($1)\n'

test.each([
  ['differs, if its files contain SQL', source, 'search_path of the role is archive, public, not public'],
  ['does not differ otherwise', '', ''],
])('a daemon whose role finds other tables by the same names %s', async (_, more, differences) => {
  await using ledger = await openLedger()
  await ledger.pool.query('create schema archive')
  const mappings = loadMappings(mappingFiles({ 'data.yaml': `${dataFile}${more}` }))
  const openAs = async (path: string) => {
    const url = new URL(ledger.url)
    url.searchParams.set('options', `-c search_path=${path}`)
    const databases = await openInstance(url.href, {}, mappings)
    onTestFinished(() => databases.close())
    return databases
  }
  expect((await openAs('public')).differences).toBe('')
  expect((await openAs('archive,public')).differences).toBe(differences)
})

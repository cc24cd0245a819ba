import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'

/**
 * One thing has one word, and it is the field's. On the left what we once said, on the right what we say now: in names, in
 * comments, in docs, in messages.
 */
const formerWords: readonly [former: RegExp, now: string][] = [
  [/purse|takeSpent/i, 'slot pool, takeReturnable'],
  [/\bsettler|settlement/i, 'outcome writer, outcome batch'],
  [/gaveUp/, 'onAbandoned'],
  [/witness/i, 'telemetry; what somebody says who saw it'],
  [/wayIsClear|probeOver|claimProbe|\b(feel|feels|felt|feeling) the way/i, 'trial; `probe` is a policy'],
  [/standingPause|ladder|\brungs?\b/i, 'activePause, backoff, step'],
  [/take-?over|\b(take|takes|took|taken|taking) over\b|readAbandoned/i, 'rescueOrphans, readOrphaned'],
  [/upkeep|forgetInstances|renewLostJobs/i, 'maintenance, deleteStaleInstances, recreateMissingJobs'],
  [/report ?desk|takeReportTurn/i, 'outboxReports'],
  [/captureTurn|\b(has|have) the turn\b/i, 'captureLock'],
  [/key ?line|lockLines|releaseHeads/i, 'keyOrder, lockKeys, releaseNext'],
  [/keepRecords|KeptRecord/i, 'insertCaptured, CapturedRecord'],
  [/dossier|\b(state of )?affairs?\b|headline|whereItStands/i, 'SubmissionDetail, SystemStatus, diagnosis'],
  [/\bmisused\b|leftAlone|whyNot\b/, 'usageError, skipped, whyNotAllowed'],
  [/\b(operate|printable|cut|controlReads|wordsIn|isGood)\(/, 'withOperatorStore, truncate, pluralize …'],
  [/spoil/i, 'applyFault, change'],
  [/journey|\bfates?\b/i, 'e2e, scenario, outcome; a record has a way'],
  [/havoc|\barena\b|\bdice\b|sabotag/i, 'nemesis, environment, random, mutation, history'],
  [/\b(test|bench) rig\b|\brigs?\b|\bscenes?\b|\blanes?\b/i, 'harness, fixture, run'],
]

/** Public names outlive our words: these keys of `--json` are promises. */
const promised = /^\s*(headlines|leftAlone):|\b(headlines|leftAlone): (string|\w+)\b|\.(headlines|leftAlone)\b/

const root = join(import.meta.dirname, '..')

test('no word that we have given up is left in code, tests, docs or messages', () => {
  const lines = readLines()
  expect(lines.length).toBeGreaterThan(20_000)
  expect(lines.flatMap(({ where, text }) => formerWordsIn(text).map((now) => `${where}: say ${now}`))).toEqual([])
})

describe('the rule itself', () => {
  test.each([
    '// the purse is empty',
    'const keyLine = 1',
    '// one request feels the way',
    "say('havoc is over')",
  ])('%s is caught', (text) => {
    expect(formerWordsIn(text)).toHaveLength(1)
  })

  test.each([
    '    headlines: report.map(shown),',
    '// by the way, an outline',
    '// originally in the archive',
  ])('%s passes', (text) => {
    expect(formerWordsIn(text)).toEqual([])
  })
})

function formerWordsIn(text: string): string[] {
  if (promised.test(text)) return []
  return formerWords.filter(([former]) => former.test(text)).map(([, now]) => now)
}

function readLines(): { where: string; text: string }[] {
  const folders = ['src', 'test', 'tools', 'docs', 'migrations', 'deploy', '.ci']
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile() && !each.parentPath.includes('node_modules'))
      .map((each) => relative(root, join(each.parentPath, each.name))),
  )
  return [...paths, 'README.md', 'CONTRIBUTING.md']
    .filter((path) => path !== 'test/words.test.ts')
    .flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .map((text, i) => ({ where: `${path}:${i + 1}`, text })),
    )
}

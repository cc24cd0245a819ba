import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startProgram } from '../support/program.ts'

async function outboxd(...args: string[]): Promise<string> {
  await using program = startProgram({ args })
  const { code, stdout, stderr } = await program.ended()
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return stdout
}

/** The commands that `--help` lists. Completion must have all of them. */
let commands: string[]
beforeAll(async () => {
  const help = await outboxd('--help')
  commands = [...help.slice(help.indexOf('Daily:')).matchAll(/^ {2}(\w+) /gm)].map(([, name = '']) => name)
  expect(commands.length).toBeGreaterThan(15)
})

describe('in bash', () => {
  let script: string
  beforeAll(async () => {
    script = join(mkdtempSync(join(tmpdir(), 'completion-')), 'outboxd.bash')
    writeFileSync(script, await outboxd('completion', 'bash'))
  })

  /** What bash would offer for the last of these words. */
  function offered(...words: string[]): string[] {
    const line = ['outboxd', ...words]
    const program = `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=${line.length - 1}; _outboxd_words; printf '%s\\n' "\${COMPREPLY[@]}"`
    const lines = execFileSync('bash', ['--norc', '-c', program, script, ...line], { encoding: 'utf8' }).split('\n')
    return lines.filter((each) => each !== '')
  }

  test('all commands are offered, or those that begin with the word', () => {
    expect(offered('')).toEqual(expect.arrayContaining([...commands.filter((name) => name !== 'help'), '--env-file']))
    expect(offered('rep')).toEqual(['replay'])
  })

  test.each([
    [['replay', '--dr'], ['--dry-run']],
    [['--env-file', '/etc/outboxd/env', 'recover', '--y'], ['--yes']],
    [['migrate', '--outbox', '--dry'], ['--dry-run']],
    [['completion', 'z'], ['zsh']],
    [['list', '--state', 'unc'], ['uncertain']],
    [['list', '--state', 'failed,re'], ['failed,rejected']],
    [['discover', '--only', 'token-u'], ['token-unit']],
    [['map', '--outbox', ''], []],
  ])('%j is completed by %j', (words, expected) => {
    expect(offered(...words)).toEqual(expected)
  })
})

test.each([
  'zsh',
  'fish',
])('the script for %s has every command and its options, and the shell accepts it', async (shell) => {
  const script = await outboxd('completion', shell)
  for (const name of commands.filter((each) => each !== 'help')) expect(script).toContain(name)
  expect(script).toContain('dry-run')
  const { status, stderr, error } = spawnSync(shell, ['-n', '/dev/stdin'], { input: script, encoding: 'utf8' })
  if (error === undefined) expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('an unknown shell exits with 2', async () => {
  await using program = startProgram({ args: ['completion', 'tcsh'] })
  expect(await program.ended()).toMatchObject({ code: 2, stderr: expect.stringContaining('bash, zsh, fish') })
})

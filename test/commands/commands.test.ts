import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkout, startProgram } from '../support/program.ts'

/** The rows of the README's table of commands. */
function tableRows(): string[] {
  const readme = readFileSync(join(checkout, 'README.md'), 'utf8')
  const section = readme.slice(readme.indexOf('## Commands'), readme.indexOf('## The console'))
  return section.split('\n').filter((line) => line.startsWith('| `'))
}

/** Each command's help, as the manual page has it. */
async function helpByCommand(): Promise<Map<string, string>> {
  await using program = startProgram({ args: ['man'] })
  const { stdout } = await program.ended()
  const sections = stdout.slice(0, stdout.indexOf('.SH ENVIRONMENT')).split('\n.SS ').slice(1)
  return new Map(sections.map((each) => [each.split('\n', 1)[0] ?? '', each.replaceAll('\\-', '-')]))
}

test('the README’s table has every command, and no option that a command does not take', async () => {
  const help = await helpByCommand()
  const rows = tableRows()
  const documented = new Set<string>()
  const unknown: string[] = []
  for (const row of rows) {
    const [, head = ''] = row.split(' | ', 1)[0]?.match(/^\| (.*)$/) ?? []
    const names = [...help.keys()].filter((name) => new RegExp(`\`${name}[ \`]`).test(head))
    for (const name of names) documented.add(name)
    for (const [option] of head.matchAll(/--[a-z-]+/g))
      if (!names.some((name) => new RegExp(`${option}[ ,]`).test(help.get(name) ?? '')))
        unknown.push(`${names.join(', ')}: ${option}`)
  }
  expect([...help.keys()].filter((name) => !documented.has(name))).toEqual([])
  expect(unknown).toEqual([])
})

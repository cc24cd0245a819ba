import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { CommandModule } from '../src/commands/terminal/command.ts'

/** Every `outboxd …` that a page, an alert or a message of the program quotes is a command that exists, with its options. */

const root = join(import.meta.dirname, '..')
const commands = await readCommands()
const quotes = ['README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'docs', 'deploy', 'src']
  .flatMap(filesOf)
  .flatMap(quotesOf)

test('the quoted commands were found', () => {
  const from = (folder: string) => quotes.filter(({ file }) => file.startsWith(folder)).length
  expect([from('docs') > 120, from('src') > 100, from('deploy') > 10]).toEqual([true, true, true])
})

test('every quoted command exists, with its options, its arguments and a value for each option that needs one', () => {
  const wrong = quotes.flatMap(({ file, line, words }) => {
    const fault = findCauseOfFailedQuery(words)
    return fault === null ? [] : [`${file}:${line}: outboxd ${words.join(' ')}: ${fault}`]
  })
  expect(wrong).toEqual([])
})

/** An operator copies commands from these files without changes. */
const advice = [
  /^docs\/run\/(runbook|restore)\.md$/,
  /^deploy\/prometheus-rules\.yaml$/,
  /^src\/operations\/(problemMessages|serviceLevelTargets|diagnose|lossMessages|databaseMessages)\.ts$/,
]

test('commands to copy have each option that is required', () => {
  const incomplete = quotes.flatMap(({ file, line, words }) => {
    const missing = advice.some((page) => page.test(file)) ? findMissing(words) : []
    return missing.length === 0 ? [] : [`${file}:${line}: outboxd ${words.join(' ')}: lacks ${missing.join(', ')}`]
  })
  expect(incomplete).toEqual([])
  expect(findMissing(['pause', '--for', '1h'])).toEqual(['--reason'])
  expect(findMissing(['recover'])).toEqual([])
})

test.each([
  ['staus', 'no such command'],
  ['show outbox:1 --verbose', 'no option --verbose'],
  ['status 7', '0 arguments at most'],
  ['list --state', '--state wants a value'],
  ['pause --json=1', '--json takes no value'],
  ['completion ksh', 'ksh is not one of'],
])('outboxd %s is caught', (text, fault) => {
  expect(findCauseOfFailedQuery(text.split(' '))).toContain(fault)
})

function findCauseOfFailedQuery([name = '', ...words]: string[]): string | null {
  const command = commands.get(name)
  if (command === undefined) return 'no such command'
  const flags = ['--help', '--env-file <file>', ...(command.options ?? []).map(([row]) => row)]
  const options = new Map(flags.map((row) => [row.replace(/ .*/, ''), row.includes(' ')]))
  const given: string[] = []
  while (words.length > 0) {
    const word = words.shift() ?? ''
    if (!word.startsWith('--')) {
      given.push(word)
      continue
    }
    const [option = '', value] = word.split(/=(.*)/s)
    if (!options.has(option)) return `no option ${option}`
    const wants = options.get(option) ?? false
    if (!wants && value !== undefined) return `${option} takes no value`
    if (wants && value === undefined && (words.shift() ?? '--').startsWith('--')) return `${option} wants a value`
  }
  const rows = command.arguments ?? []
  if (!rows.some(([row]) => row.includes('...')) && given.length > rows.length)
    return `${rows.length} arguments at most`
  const unknown = given.find((word, at) => /^[a-z]+$/.test(word) && !(rows[at]?.[2]?.includes(word) ?? true))
  return unknown === undefined ? null : `${unknown} is not one of the words of its argument`
}

function findMissing([name = '', ...words]: string[]): string[] {
  const required = (commands.get(name)?.options ?? []).filter(([, , how]) => how?.required)
  return required.map(([row]) => row.replace(/ .*/, '')).filter((option) => !words.includes(option))
}

interface Quote {
  file: string
  line: number
  words: string[]
}

/** In code a quote stands between backticks; on a page, in a line of a code block, too. */
function quotesOf(file: string): Quote[] {
  const text = readFileSync(join(root, file), 'utf8')
  // What the program fills in is one word.
  const filled = text.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, (value) => `VALUE${value.replace(/[^\n]/g, '')}`)
  const quotes = file.endsWith('.ts')
    ? filled.matchAll(/\\?`outboxd ([^`\\\n]+)(?:\\`|`(?=.*['"]))/g)
    : [
        ...text.matchAll(/`(?:npx (?:--no-install )?)?outboxd\s([^`\n]+(?:\n[^`\n]+)?)`/g),
        ...text.matchAll(
          /(?<=^```(?:sh|bash|console)\n(?:(?!```).*\n)*[^#\n]*)\boutboxd (?=(?:[a-z]+)(?: |$))([^`\n]*)$/gm,
        ),
      ]
  return [...quotes].flatMap((match) => {
    const words = wordsOf(match[1] ?? '')
    return words === null ? [] : [{ file, line: filled.slice(0, match.index).split('\n').length, words }]
  })
}

/** Returns the words of the first command of a shell line; null if it is only a name, as of a user. */
function wordsOf(text: string): string[] | null {
  const [command = ''] = text.split(/\s(?:[|;&>#]|&&|2>)|[;|]|…$|\.\.\.$/)
  const words = command.match(/(?:'[^']*'|"[^"]*"|<[^>]*>|[^\s'"<])+/g) ?? []
  if (words[0] === 'outboxd') words.shift() // a container's name goes before
  const isSession = words[0] === 'registration' // "outboxd registration" in pg_stat_activity
  return /^[a-z]+$/.test(words[0] ?? '') && !isSession ? words : null
}

function filesOf(path: string): string[] {
  if (/\.[a-z]+$/.test(path)) return [path]
  return readdirSync(join(root, path), { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile() && /\.(md|ts|ya?ml|service|timer)$/.test(each.name))
    .map((each) => join(each.parentPath, each.name).slice(root.length + 1))
    .filter((file) => !/node_modules|\.vitepress/.test(file))
}

async function readCommands(): Promise<Map<string, CommandModule>> {
  const names = [
    ...readFileSync(join(root, 'src/main.ts'), 'utf8').matchAll(/^ {2}([a-z]+): \(\) => import\('\.\/commands/gm),
  ]
  const load = async (name: string) => (await import(`../src/commands/${name}.ts`)) as { command: CommandModule }
  return new Map(await Promise.all(names.map(async ([, name = '']) => [name, (await load(name)).command] as const)))
}

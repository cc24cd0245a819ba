import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Prints how plain the words are: README, docs, messages and comments, with rates per 1,000 words.
 *
 * Exits with 1 if README or docs break a limit. The rates are a thermometer; only a cold reading shows whether a page is clear.
 */

const checkout = join(import.meta.dirname, '../..')
/** The limits for README and docs. */
const longSentencesMax = 0.05
const nobodyMax = 0.5
const ifMin = 4

/** Strings of the source that are SQL and not messages. */
const isSql = /^\s*(select|insert|update|delete|with|create|alter|drop|from|where|and|join|set|left join)\b/

const sources = filesBelow('src', '.ts').map((path) => read(path))
/** All pages but the reference, which consists of tables and names of tests. */
const pages = filesBelow('docs', '.md').filter((path) => !path.startsWith('docs/reference/'))
const rates = {
  README: measure(plainText(read('README.md'))),
  docs: measure(pages.map((path) => plainText(read(path))).join('\n\n')),
  messages: measure(sources.flatMap(messagesOf).join('\n\n')),
  comments: measure(sources.flatMap(commentsOf).join('\n\n')),
}

const print = (...cells: (string | number)[]) => console.log(`| ${cells.join(' | ')} |`)
print('what', 'words', 'if', 'where', 'nobody…', 'told…', 'you', 'median', 'p90', 'over 30')
print('---', '---:', '---:', '---:', '---:', '---:', '---:', '---:', '---:', '---:')
for (const [what, { words, per, median, p90, long }] of Object.entries(rates))
  print(what, words, ...Object.values(per).map((rate) => rate.toFixed(2)), median, p90, `${(long * 100).toFixed(1)} %`)

const broken = (['README', 'docs'] as const).flatMap((what) => {
  const { per, long } = rates[what]
  return [
    ...(long > longSentencesMax
      ? [`${what}: more than ${longSentencesMax * 100} % of the sentences have over 30 words`]
      : []),
    ...(per.nobody > nobodyMax
      ? [`${what}: nobody, somebody, whoever, none: more than ${nobodyMax} per 1,000 words`]
      : []),
    ...(what === 'docs' && per.if < ifMin ? [`docs: "if" less than ${ifMin} times per 1,000 words`] : []),
  ]
})
for (const line of broken) console.error(line)
process.exitCode = broken.length > 0 ? 1 : 0

function measure(text: string) {
  const words = text.match(/[A-Za-z][A-Za-z’'-]*/g)?.length ?? 0
  const rate = (pattern: RegExp) => ((text.match(pattern)?.length ?? 0) / words) * 1000
  const lengths = text
    .split(/(?<=[.!?:])\s+(?=[A-Z*])|\n\s*\n|\n[-*] /)
    .map((sentence) => sentence.trim().split(/\s+/).length)
    .filter((length) => length > 2)
    .sort((a, b) => a - b)
  const quantile = (q: number) => lengths[Math.floor(lengths.length * q)] ?? 0
  return {
    words,
    per: {
      if: rate(/\bif\b/gi),
      where: rate(/\bwhere\b/gi),
      nobody: rate(/\b(nobody|somebody|whoever|none)\b/gi),
      told: rate(/\b(told|tells?|said|says?)\b/gi),
      you: rate(/\byou\b/gi),
    },
    median: quantile(0.5),
    p90: quantile(0.9),
    long: lengths.filter((length) => length > 30).length / lengths.length,
  }
}

/** The sentences of a page: no code, no tables, no headings. */
function plainText(markdown: string): string {
  return markdown
    .replace(/```[\s\S]*?```|^\|.*$|<!--[\s\S]*?-->|^#.*$/gm, ' ')
    .replace(/`[^`]*`/g, 'x')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}

/** Texts of at least five words in the source's strings, with x for each value. */
function messagesOf(source: string): string[] {
  const code = source.replace(/^\s*(\/\*\*?|\*|\/\/).*$/gm, '')
  const texts = [...code.matchAll(/'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g)].map(([, quoted, template]) =>
    (quoted ?? template ?? '').replace(/\$\{[^}]*\}/g, 'x'),
  )
  return texts
    .filter((text) => text.split(/\s+/).length >= 5 && !isSql.test(text))
    .map((text) => text.replace(/`[^`]*`/g, 'x'))
}

/** Each comment's text, with successive lines of `//` as one. */
function commentsOf(source: string): string[] {
  const blocks = source.match(/\/\*\*?[\s\S]*?\*\/|(?:^\s*\/\/.*\n?)+|(?<=\s)\/\/ .*/gm) ?? []
  return blocks.map((block) =>
    block
      .replace(/^\s*(\/\*\*?|\*\/|\*|\/\/)|\*\/$/gm, ' ')
      .replace(/@\w+/g, ' ')
      .replace(/`[^`]*`/g, 'x'),
  )
}

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(checkout, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith(ending) && !path.includes('node_modules/'))
    .map((path) => `${folder}/${path}`)
}

function read(path: string): string {
  return readFileSync(join(checkout, path), 'utf8')
}

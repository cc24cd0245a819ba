import { type HtmlSafeString, type HtmlValue, html, joinHtml } from '@prairielearn/html'
import { escapeControl } from '../../plainText.ts'

/** What an option of the commands is called on a form. */
export const fieldWords = {
  state: 'State',
  code: 'Error code',
  type: 'Type',
  key: 'Key',
  since: 'In its state since',
  until: 'Until',
  transaction: 'Transaction',
  containing: 'Containing',
  'may-have-arrived': 'May have arrived',
  cause: 'Cause',
  limit: 'Rows a page',
  refresh: 'Read the row anew',
  'even-if-arrived': 'Also what may have arrived',
  'new-key': 'New idempotency key',
  arrived: 'It arrived as',
  'not-arrived': 'It did not arrive',
  'take-back': 'Take the id back',
  unchecked: 'Without asking the service',
  reason: 'Reason',
} as const satisfies Record<string, string>

interface Rule {
  form: RegExp
  /** What stands there instead, from what the form has found. */
  page: (found: readonly string[]) => HtmlValue
}

/** Ends before the full stop of a sentence. */
const name = '([\\w:@%+=/-]+(?:\\.[\\w:@%+=/-]+)*)'

const rules: readonly Rule[] = [
  { form: new RegExp(`^outboxd show ${name}`), page: ([, id = '']) => recordLink(id) },
  {
    form: new RegExp(`^outboxd (?:resolve|replay|discard) (outbox:${name})`),
    page: ([, id = '']) => recordLink(id),
  },
  {
    form: new RegExp(`^outboxd map --outbox ${name}`),
    page: ([, id = '']) => html`<a href="/mapping?outbox=${encodeURIComponent(id)}">Mapping</a>`,
  },
  { form: /^outboxd list --containing/, page: () => html`<a href="/records">Records, “${fieldWords.containing}”,</a>` },
  {
    form: /^outboxd list((?: --(?:state [\w,]+|by-cause|newest))*)(?! --)/,
    page: ([, options = '']) => html`<a href="/records${asQuery(options)}">Records</a>`,
  },
  {
    form: /^outboxd resume((?: --(?:all|believe-refusals))*)(?! --)/,
    page: ([, options = '']) => html`<a href="/resume${asQuery(options).replace('believe-r', 'believeR')}">Resume</a>`,
  },
  { form: /^outboxd audit(?! --)/, page: () => html`<a href="/audit">Audit</a>` },
  { form: /^outboxd status/, page: () => html`<a href="/">Now</a>` },
  { form: /^outboxd [a-z]+(?: --[a-z-]+)*/, page: ([command = '']) => html`<code>${command}</code>` },
  { form: /^--([a-z-]+)/, page: ([option = '', field = '']) => fieldOf(field) ?? html`<code>${option}</code>` },
]

/**
 * What a command says, with links in the place of the commands that it names, where a page does the same, and the names of
 * fields in the place of options. Pure.
 *
 * @param madeOf all data that the text was made of, of any shape. A command or option that stands in one of its texts may be
 *   there by the words of the ERP or the service: it is shown as it stands.
 */
export function advice(text: string, madeOf: unknown): HtmlSafeString {
  const theirs = new Set<string>()
  collectCommands(madeOf, theirs)
  const parts: HtmlValue[] = []
  let from = 0
  for (const { index } of text.matchAll(/(?<![\w-])(?:outboxd |--)(?=[a-z])/g)) {
    if (index < from) continue
    const rest = text.slice(index)
    const [, command = ''] = /^((?:outboxd |--)[a-z-]+)/.exec(rest) ?? []
    if (theirs.has(command)) continue
    for (const { form, page } of rules) {
      const found = form.exec(rest)
      if (found === null) continue
      parts.push(escapeControl(text.slice(from, index)), page(found))
      from = index + found[0].length
      break
    }
  }
  return joinHtml([...parts, escapeControl(text.slice(from))])
}

/** The commands and options that a text names, each by its word. */
const commandsIn = (text: string): string[] =>
  [...text.matchAll(/(?:outboxd\s+|--)[a-z-]+/gi)].map(([found]) => found.toLowerCase().replace(/\s+/, ' '))

function collectCommands(data: unknown, into: Set<string>): void {
  if (typeof data === 'string') for (const command of commandsIn(data)) into.add(command)
  if (typeof data !== 'object' || data === null) return
  const members = data instanceof Map ? [...data].flat() : data instanceof Set ? [...data] : Object.entries(data).flat()
  for (const member of members) collectCommands(member, into)
}

const recordLink = (id: string) => html`<a href="/records/${encodeURIComponent(id)}">${id}</a>`

/** Options as an address has them: those without a value are `on`. */
function asQuery(options: string): string {
  const given = [...options.matchAll(/--([a-z-]+)(?: ([\w,]+))?/g)].map(
    ([, option, value = 'on']) => `${option}=${value}`,
  )
  return given.length === 0 ? '' : `?${given.join('&')}`
}

const fieldOf = (option: string) =>
  Object.hasOwn(fieldWords, option) ? `“${fieldWords[option as keyof typeof fieldWords]}”` : undefined

/**
 * A part of a page. `html` makes it, and all escaping depends on this file:
 *
 *     text                 <td>${value}</td>             a value is escaped
 *     attribute            <a title="${value}">          a value is escaped; between quotes only
 *     address              <a href="${value}">           a value must be a path of this console, such as /records
 *     attributes           <option${part}>               only a part, or nothing
 */
export class HtmlPart {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  toString(): string {
    return this.#text
  }
}

export type HtmlValue = string | number | bigint | null | undefined | HtmlPart | readonly HtmlValue[]

/** @throws Error for a value where `html` cannot make it harmless, whatever the value is */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): HtmlPart {
  const places = placesOf(strings)
  const [first = '', ...rest] = strings
  return new HtmlPart(first + rest.map((string, i) => write(values[i], places[i] as Place) + string).join(''))
}

type Place = 'text' | 'attribute' | 'address' | 'tag'

const places = new WeakMap<TemplateStringsArray, Place[]>()

function placesOf(strings: TemplateStringsArray): Place[] {
  const known = places.get(strings) ?? strings.slice(0, -1).map((_, i) => placeAfter(strings.slice(0, i + 1).join('')))
  places.set(strings, known)
  return known
}

/** Where a value stands after this markup of our own, in which `>` is always the end of a tag or text. */
function placeAfter(markup: string): Place {
  const tag = /<[a-z!/][^<>]*$/i.exec(markup)?.[0]
  if (/(<(script|style)[^<>]*>|<!--)[^<]*$/i.test(markup))
    throw new Error(`no value may stand here: ${markup.slice(-60)}`)
  if (tag === undefined) return /\s(href|action|formaction|src)="$/.test(markup) ? 'address' : 'text'
  const isQuoted = tag.split('"').length % 2 === 0
  if (!isQuoted) return 'tag'
  return /\s(href|action|formaction|src)="$/.test(tag) ? 'address' : 'attribute'
}

function write(value: HtmlValue, place: Place): string {
  if (value === null || value === undefined || value === '') return ''
  if (value instanceof HtmlPart) {
    if (place === 'text' || place === 'tag') return value.toString()
    throw new Error('no part may stand in an attribute')
  }
  if (place === 'tag') throw new Error('only a part may stand within a tag')
  if (typeof value === 'object') return value.map((each) => write(each, place)).join('')
  if (place === 'address' && !/^(\/(?![/\\])|#)/.test(String(value))) throw new Error('not a path of this console')
  return String(value).replace(/[&<>"']/g, (character) => escaped[character] ?? '')
}

const escaped: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' }

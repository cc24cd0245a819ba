import { type HtmlValue, html } from '@prairielearn/html'
import { boundText } from '../../boundText.ts'
import { describeField } from '../../mapping/describeMapping.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import type { MappedRecord } from '../../mapping/mapRecord.ts'
import { resources } from '../../resources.ts'
import { isDigits, isObject, type PayloadValue, readPayload } from '../../yaml/exactJson.ts'
import { foreign, notice, table } from '../html/elements.ts'
import type { RecordView } from './readRecord.ts'

/** How the mapping files of now make the request of the payload, field by field. */
export function fieldsSection({ detail, mapped, mappings }: RecordView, isShown: boolean): HtmlValue {
  if (mapped === null)
    return mappings === null
      ? notice(
          'attention',
          html`<p>The mapping files cannot be read from here: see <a href="/mapping">Mapping</a>.</p>`,
        )
      : ''
  const isOther = mapped.kind === 'mapped' && detail.body !== null && mapped.body !== detail.body
  const other = isOther
    ? notice(
        'attention',
        html`<p>By the mapping files as they are now; the request below was made by others, or of another payload.</p>`,
      )
    : ''
  return html`<section aria-labelledby="fields-head"><h2 id="fields-head">Field by field</h2>${other}
${mappedTable(mapped, mappings?.get(detail.type), !isShown)}</section>`
}

/** What becomes of each field, or what is wrong with each that is wrong. */
export function mappedTable(mapped: MappedRecord, mapping: Mapping | undefined, isMasked: boolean): HtmlValue {
  const ruleOf = (name: string) => {
    const field = mapping?.fields.find((each) => each.name === name)
    return field === undefined ? '' : html`<span class="brief">${describeField(field)}</span>`
  }
  if (mapped.kind === 'refused')
    return [
      notice('bad', html`<p>It cannot be sent: ${mapped.errors.length === 1 ? 'this is' : 'these are'} wrong.</p>`),
      table(
        'What is wrong with its fields',
        [{ words: 'Field' }, { words: 'From' }, { words: 'Error' }, { words: 'Rule' }],
        mapped.errors.map(({ field, from, message }) => [
          html`<code>${field}</code>`,
          html`<code>${from || '–'}</code>`,
          foreign(message, 400),
          ruleOf(field),
        ]),
      ),
    ]
  return [
    html`<p>It becomes <code>POST ${resources[mapped.resource].path}</code>.</p>`,
    table(
      'From the client’s values to the service’s',
      [{ words: 'Field' }, { words: 'From' }, { words: 'Client' }, { words: 'Rule' }, { words: 'Sent' }],
      mapped.fields.map(({ field, from, source, value }) => [
        html`<code>${field}</code>`,
        from === null ? '(constant)' : html`<code>${from}</code>`,
        source === null ? '(missing)' : foreign(shownValue(source, isMasked), 200),
        ruleOf(field),
        value === null ? '(left out)' : foreign(shownValue(value, isMasked), 200),
      ]),
    ),
  ]
}

/** What stands in the place of a value that nobody has asked for. */
export const mask = '•••'

/** A text of a record as a page shows it. */
export interface ShownText {
  text: string
  /** There is more of it than stands here. */
  isCut: boolean
}

const charactersMax = 20_000

/**
 * JSON text in lines, numbers with their own digits; masked: its names alone, for whatever a value is, it may be a person's. A
 * text that is no object is shown as it is, or not at all. Pure.
 */
export function shownJson(json: string, isMasked: boolean): ShownText {
  const read = readPayload(json)
  const text =
    read.kind === 'payload'
      ? JSON.stringify(isMasked ? masked(read.payload) : read.payload, null, 2)
      : isMasked
        ? mask
        : json
  return { text: boundText(text, charactersMax), isCut: text.length > charactersMax }
}

/** The same of a single value's JSON text. Pure. */
export const shownValue = (json: string, isMasked: boolean): string =>
  isMasked && !['true', 'false', 'null'].includes(json) ? mask : json

function masked(value: PayloadValue): unknown {
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value === 'string' || isDigits(value)) return mask
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, masked(member)]))
}

import { boundText } from '../../boundText.ts'
import type { SubmissionDetail } from '../../ledger/operator/readSubmissionDetail.ts'
import { describeField, type Mapping } from '../../mapping/mapping.ts'
import { type MappedOrRefusedRecord, mapOutboxRecord } from '../../mapping/mapRecord.ts'
import { missingContentText } from '../../operations/submissionFacts.ts'
import { escapeControlInLines } from '../../plainText.ts'
import { serviceResources } from '../../resources.ts'
import { isExactNumber, isObject, type PayloadValue, readPayload } from '../../yaml/exactJson.ts'
import type { Viewer } from '../guard/installGuard.ts'
import { nothingToShow, notice, section, table, untrustedTextHtml } from '../html/elements.ts'
import { formHtml } from '../html/form.ts'
import { type HtmlValue, html } from '../html/html.ts'
import type { MappingFiles } from '../parts.ts'
import { maskedValuesNote } from '../valueAccess.ts'

export function valuesSection(
  detail: SubmissionDetail,
  files: MappingFiles,
  viewer: Viewer,
  { areValuesShown, search }: { areValuesShown: boolean; search: string },
): HtmlValue {
  const { id, payload, body, result, attempt } = detail
  const [path, words, button] = areValuesShown
    ? ['hide', 'You see the values for a quarter of an hour.', 'Hide values']
    : ['show', maskedValuesNote(viewer), 'Show values']
  const asking = formHtml(
    { action: `/records/${id}/${path}${search}`, viewer, changes: false },
    html`<button data-key="v">${button}</button>`,
  )
  const text = (name: string, title: string, json: string | null, whyNone: string) => {
    const none = nothingToShow(`(${missingContentText(detail, whyNone)})`)
    const content = json === null ? none : jsonHtml(json, !areValuesShown, title)
    return html`<details id="${name}"><summary>${title}</summary>${content}</details>`
  }
  return section('values', html`What ${attempt > 0 ? 'was' : 'would be'} sent ${asking}`, [
    html`<p class="quiet">${words}</p>`,
    fieldsHtml(detail, files, areValuesShown),
    text('payload', 'Payload, as the ERP wrote it', payload, 'it could not be read'),
    text('body', `Request, as it ${attempt > 0 ? 'is' : 'would be'} sent`, body, 'the record did not map'),
    result === null ? '' : text('result', 'Answer, as the service gave it', result, ''),
  ])
}

export function jsonHtml(json: string, isMasked: boolean, ariaLabel: string): HtmlValue {
  const { text, isCut } = shownJson(json, isMasked)
  return html`<pre tabindex="0" role="group" aria-label="${ariaLabel}">${escapeControlInLines(text)}</pre>
${isCut ? html`<p class="quiet">This is only the beginning: <code>outboxd show --json</code> prints all of it.</p>` : ''}`
}

/** The request by the current mapping files. */
function fieldsHtml({ id, type, payload, body }: SubmissionDetail, files: MappingFiles, isShown: boolean): HtmlValue {
  if (files.kind === 'invalid') return notice('attention', noFilesNote)
  if (payload === null) return ''
  const mapped = mapOutboxRecord(files.mappings, { type, payload, unreadable: null }, id)
  const isOther = mapped.kind === 'mapped' && body !== null && mapped.body !== body
  return [
    isOther ? notice('attention', otherFilesNote) : '',
    mappedFieldsTable(mapped, files.mappings.get(type), !isShown),
  ]
}

const noFilesNote = html`<p>The mapping files cannot be read from here: see <a href="/mapping">Mapping</a>.</p>`
const otherFilesNote =
  'This table uses the mapping files as they are now. The request below was made with earlier files, or from a different payload.'

export function mappedFieldsTable(
  mapped: MappedOrRefusedRecord,
  mapping: Mapping | undefined,
  isMasked: boolean,
): HtmlValue {
  const ruleOf = (name: string) => {
    const field = mapping?.fields.find((each) => each.name === name)
    return field === undefined ? '' : describeField(field)
  }
  if (mapped.kind === 'refused') {
    const which = mapped.errors.length === 1 ? 'this field' : 'these fields'
    return [
      notice('bad', `It cannot be sent because of ${which}.`),
      table(
        'Errors by field',
        ['Field', 'From', 'Error', 'Rule'],
        mapped.errors.map(({ field, from, message }) => [
          html`<code>${field}</code>`,
          html`<code>${from || '–'}</code>`,
          untrustedTextHtml(message, 400),
          ruleOf(field),
        ]),
      ),
    ]
  }
  return [
    html`<p class="quiet">It becomes <code>POST ${serviceResources[mapped.resource].path}</code>.</p>`,
    table(
      'Fields, in the ERP and as sent',
      ['Field', 'In the ERP', 'Sent', 'Rule'],
      mapped.fields.map(({ field, from, source, value }) => [
        html`<code>${field}</code>`,
        from === null
          ? '(constant)'
          : html`<code>${from}</code> ${source === null ? '(missing)' : untrustedTextHtml(shownValue(source, isMasked), 200)}`,
        value === null ? '(left out)' : untrustedTextHtml(shownValue(value, isMasked), 200),
        ruleOf(field),
      ]),
    ),
  ]
}

export const maskText = '•••'

const charactersMax = 20_000

/** Indents JSON and keeps each number's digits. `isMasked` masks every value, because any may be personal. */
function shownJson(json: string, isMasked: boolean): { text: string; isCut: boolean } {
  const read = readPayload(json)
  const ifInvalid = isMasked ? maskText : json
  const text =
    read.kind === 'payload' ? JSON.stringify(isMasked ? masked(read.payload) : read.payload, null, 2) : ifInvalid
  return { text: boundText(text, charactersMax), isCut: text.length > charactersMax }
}

const shownValue = (json: string, isMasked: boolean): string =>
  isMasked && !['true', 'false', 'null'].includes(json) ? maskText : json

function masked(value: PayloadValue): unknown {
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value === 'string' || isExactNumber(value)) return maskText
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, masked(member)]))
}

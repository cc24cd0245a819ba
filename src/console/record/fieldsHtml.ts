import { type HtmlValue, html } from '@prairielearn/html'
import { describeField } from '../../mapping/describeField.ts'
import type { MappedRecord } from '../../mapping/mapOutboxRecord.ts'
import type { Mapping } from '../../mapping/mapping.ts'
import { resources } from '../../resources.ts'
import { foreign } from '../html/foreign.ts'
import { notice } from '../html/notice.ts'
import { table } from '../html/table.ts'
import type { RecordView } from './readRecord.ts'
import { shownValue } from './shownText.ts'

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

import { type ListedSubmission, readPayloads } from '../../ledger/operator/selectSubmissions.ts'
import type { ListColumn } from '../../mapping/mapping.ts'
import type { Database } from '../../postgres/database.ts'
import { isExactNumber, type PayloadValue, readPayload, writeJson } from '../../yaml/exactJson.ts'
import { type Column, untrustedTextHtml } from '../html/elements.ts'
import type { HtmlValue } from '../html/html.ts'
import type { MappingFiles } from '../parts.ts'
import { maskText } from '../record/valuesHtml.ts'

/** What a list shows of payloads: the columns that the mapping files name. */
export interface ListValues {
  columns: readonly Column[]
  isMasked: boolean
  cellsOf(submission: ListedSubmission): HtmlValue[]
}

const columnsMax = 3
/** A larger payload is not read for a list. */
const payloadMaxChars = 100_000

/** @param isShown whether a viewer sees the values of the record; those of others are masked and not read */
export async function readListValues(
  ledger: Database,
  files: MappingFiles,
  submissions: readonly ListedSubmission[],
  isShown: (id: string) => boolean,
): Promise<ListValues> {
  const columnsOf = (type: string) => (files.kind === 'value' ? (files.mappings.get(type)?.list ?? []) : [])
  const all = new Map<string, ListColumn>()
  for (const { type } of submissions) for (const column of columnsOf(type)) all.set(column.heading, column)
  const shown = [...all.values()].slice(0, columnsMax)
  const ids = submissions.map(({ id }) => id).filter(isShown)
  const payloads = ids.length === 0 ? new Map() : await readPayloads(ledger, ids, payloadMaxChars)
  return {
    columns: shown.map(({ heading, isAmount }) => (isAmount ? { words: heading, kind: 'number' as const } : heading)),
    isMasked: shown.length > 0 && ids.length < submissions.length,
    cellsOf({ id, type }) {
      const own = columnsOf(type)
      const payload = payloads.get(id)
      return shown.map(({ heading }) => {
        const column = own.find((each) => each.heading === heading)
        if (column === undefined) return ''
        if (!isShown(id)) return maskText
        return payload === undefined ? '–' : valueHtml(payload, column)
      })
    },
  }
}

function valueHtml(payload: string, { read }: ListColumn): HtmlValue {
  const found = readPayload(payload)
  const value = found.kind === 'payload' ? read(found.payload) : found
  if (value.kind !== 'found' || value.value === null) return '–'
  return untrustedTextHtml(valueText(value.value), 60)
}

/** A number keeps its digits. */
function valueText(value: PayloadValue): string {
  if (typeof value === 'string') return value
  return isExactNumber(value) ? groupThousands(value.rawJSON) : writeJson(value)
}

const groupThousands = (digits: string) =>
  /^-?\d{4,}(\.\d+)?$/.test(digits) ? digits.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ',') : digits

import { type CatalogTable, listOf, mayChooseRows, quoteLiteral } from './catalogTable.ts'
import type { Reference } from './relatedTables.ts'

/** @param referredBy the tables that may have parts of the document */
export function proposeChangeCaptureCall(table: CatalogTable, type: string, referredBy: readonly Reference[]): string {
  const keys = referredBy.flatMap(({ from, columns: [column, ...others] }) =>
    others.length === 0 ? [quoteLiteral(`${from}.${column}`)] : [],
  )
  const children = `whose changes change the document; nothing if none${keys.length === 0 ? '' : `; foreign keys: ${keys.join(', ')}`}`
  const condition = `which documents are to be sent, such as $$n.COLUMN = 'VALUE'$$, in later states too; null for all${listOf(table.columns.filter(mayChooseRows))}`
  return `-- Proposed by outboxd describe --capture. docs/start/change-capture.md says how to run it, and with which rights.
select outboxd_capture.install(${quoteLiteral(table.sql)},
  type      => ${quoteLiteral(type)},
  children  => array[FILL_IN]::text[], -- FILL IN: ${onOneLine(children)}
  condition => FILL_IN, -- FILL IN: ${onOneLine(condition)}
  outbox    => 'public.outbox');
`
}

const onOneLine = (text: string) => text.replace(/[\s\p{Cc}]+/gu, ' ')

import type { CatalogColumn, CatalogTable } from './catalogTable.ts'
import { findWorkflowColumn, isTextColumn, type ValuesOfColumn } from './findSentColumnCandidates.ts'
import { type ErpDocument, type Lines, tablesOfDocument } from './relatedTables.ts'
import { quoteName, quoteTable } from './sqlNames.ts'

/**
 * Proposes the call that installs change capture for a document.
 * @param role the daemon's role, which reads the document
 */
export function proposeChangeCaptureCall(
  document: ErpDocument,
  lines: Lines,
  type: string,
  valuesOf: ValuesOfColumn,
  role: string,
): string {
  const { header } = document
  const captured = [header, lines.table].map(quoteTable)
  const read = tablesOfDocument(document).map(quoteTable)
  return `-- Proposed by outboxd describe: captures each change of ${oneLine(captured[0] ?? '')} and of its lines (docs/start/change-capture.md).
-- 1. Run deploy/change-capture/install.sql once in this database (psql -1), as the role outboxd_capture.
-- 2. The owner of the tables grants what is needed:
${schemaGrants([header, lines.table], 'outboxd_capture')}--      grant trigger on ${oneLine(captured.join(', '))} to outboxd_capture;
--      grant insert on public.outbox to outboxd_capture;
${schemaGrants(tablesOfDocument(document), quoteName(role))}--      grant select on ${oneLine(read.join(', '))} to ${oneLine(quoteName(role))};
-- 3. Run this file as the role outboxd_capture.
select outboxd_capture.install(${quoteLiteral(quoteTable(header))},
  type      => ${quoteLiteral(type)},
  children  => array[${quoteLiteral(`${quoteTable(lines.table)}.${quoteName(lines.column)}`)}],
${conditionLine(header, valuesOf)}  outbox    => 'public.outbox');
`
}

/** Everyone may use the schema public. */
function schemaGrants(tables: readonly CatalogTable[], role: string): string {
  const schemas = new Set(tables.map(({ schema }) => schema).filter((schema) => schema !== 'public'))
  return [...schemas]
    .map((schema) => `--      grant usage on schema ${oneLine(quoteName(schema))} to ${oneLine(role)};\n`)
    .join('')
}

/** If there is a workflow column, asks which documents are to be sent, because only the user knows. */
function conditionLine(header: CatalogTable, valuesOf: ValuesOfColumn): string {
  const wordsIn = ({ name, allowed }: CatalogColumn) => allowed ?? valuesOf(name) ?? []
  const workflow =
    findWorkflowColumn(header.columns) ??
    header.columns.find((column) => isTextColumn(column) && areStates(wordsIn(column)))
  if (workflow === undefined) return '  -- condition => $$…$$: only the documents that meet it; n is the header\n'
  const words = wordsIn(workflow)
  const ready = words.filter((word) => !early.test(word))
  const example = (ready.length > 0 ? ready : ['…']).map(quoteLiteral).join(', ')
  const has = words.length === 0 ? '' : `. The column has ${words.map(quoteLiteral).join(', ')}`
  const question = `which documents are to be sent? For example $$n.${quoteName(workflow.name)} in (${example})$$; for all of them null. Name the later states, too: a document is read a moment after its change${has}`
  return `  condition => FILL_IN, -- FILL IN: ${oneLine(question)}\n`
}

/** True for a few words without digits, as states have them. */
const areStates = (words: readonly string[]) =>
  words.length > 1 && words.every((word) => /^[\p{L}_ -]{1,20}$/u.test(word))

/** Words for documents that are not ready, or were cancelled. */
const early = /^(new|neu|draft|entwurf|angebot|open|offen|quot|sent$|cancel|storn|void)/i

const quoteLiteral = (text: string) => `'${text.replaceAll("'", "''")}'`

/** A name may contain a line break, which would end the comment. */
const oneLine = (text: string) => text.replace(/[\s\p{Cc}]+/gu, ' ')

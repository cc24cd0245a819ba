import { type CatalogTable, quoteNameIfNeeded, quoteTableIfNeeded } from './catalogTable.ts'
import { type DocumentLines, type ErpDocument, tablesOfDocument } from './relatedTables.ts'
import { chooseExampleValue, findDocumentStatusColumn } from './sentColumns.ts'

/** @param role the daemon's role, which reads the document */
export function proposeChangeCaptureCall(
  document: ErpDocument,
  lines: DocumentLines,
  type: string,
  role: string,
): string {
  const { header } = document
  const captured = [header, lines.table].map(quoteTableIfNeeded)
  const read = tablesOfDocument(document).map(quoteTableIfNeeded)
  return `-- Proposed by outboxd describe: captures each change of ${oneLine(captured[0] ?? '')} and of its lines (docs/start/change-capture.md).
-- 1. Run deploy/change-capture/install.sql once in this database (psql -1), as the role outboxd_capture.
-- 2. The owner of the tables grants what is needed:
${schemaGrants([header, lines.table], 'outboxd_capture')}--      grant trigger on ${oneLine(captured.join(', '))} to outboxd_capture;
--      grant insert on public.outbox to outboxd_capture;
${schemaGrants(tablesOfDocument(document), quoteNameIfNeeded(role))}--      grant select on ${oneLine(read.join(', '))} to ${oneLine(quoteNameIfNeeded(role))};
-- 3. Run this file as the role outboxd_capture.
select outboxd_capture.install(${quoteLiteral(quoteTableIfNeeded(header))},
  type      => ${quoteLiteral(type)},
  children  => array[${quoteLiteral(`${quoteTableIfNeeded(lines.table)}.${quoteNameIfNeeded(lines.column)}`)}],
  condition => FILL_IN, -- FILL IN: ${oneLine(conditionQuestion(header))}
  outbox    => 'public.outbox');
`
}

/** Leaves out the schema public, because every role may use it. */
function schemaGrants(tables: readonly CatalogTable[], role: string): string {
  const schemas = new Set(tables.map(({ schema }) => schema).filter((schema) => schema !== 'public'))
  return [...schemas]
    .map((schema) => `--      grant usage on schema ${oneLine(quoteNameIfNeeded(schema))} to ${oneLine(role)};\n`)
    .join('')
}

/** Asks which documents are to be sent, because only the user knows. */
function conditionQuestion({ columns }: CatalogTable): string {
  const workflow = findDocumentStatusColumn(columns)
  const words = workflow?.knownValues ?? []
  const has = words.length === 0 ? '' : `. The column has ${words.map(quoteLiteral).join(', ')}`
  const example = `n.${workflow === null ? 'COLUMN' : quoteNameIfNeeded(workflow.name)} in (${quoteLiteral(chooseExampleValue(words))})`
  return `which documents are to be sent? For example $$${example}$$; for all of them null. Name the later states, too: a document is read a moment after its change${has}`
}

const quoteLiteral = (text: string) => `'${text.replaceAll("'", "''")}'`

/** A name may contain a line break, which would end the comment. */
const oneLine = (text: string) => text.replace(/[\s\p{Cc}]+/gu, ' ')

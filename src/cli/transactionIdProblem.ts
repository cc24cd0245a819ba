/** As long as an id of the service may be (service/wire.ts). */
const transactionIdMaxChars = 255

/** What a script or a spreadsheet writes where it has no id, and what a person writes who answers another question. */
const noIds: ReadonlySet<string> = new Set([
  'null',
  'undefined',
  'none',
  'nil',
  'nan',
  'n/a',
  'na',
  'unknown',
  'true',
  'false',
  ...[
    'yes',
    'no',
    'y',
    'n',
    'ja',
    'nein',
    'ok',
    'okay',
    'x',
    'done',
    'arrived',
    'not-arrived',
    'not_arrived',
    'notarrived',
  ],
  ...['received', 'found', 'missing', 'lost', 'accepted', 'completed', 'failed', 'rejected', 'pending', 'uncertain'],
])

/** Why a text that a person gave is no transaction's id; null where it may be one. Pure. */
export function transactionIdProblem(id: string): string | null {
  if (id.length > transactionIdMaxChars || /[\s\p{Cc}]/u.test(id) || !id.isWellFormed())
    return `a transaction's id has no blanks and at most ${transactionIdMaxChars} characters`
  if (noIds.has(id.toLowerCase()) || !/[\p{L}\p{N}]/u.test(id))
    return `${id} is no transaction's id: give the one that the service gave`
  return null
}

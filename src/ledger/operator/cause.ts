/**
 * What stands in a submission's way, without what is this record's own: two records with the same fault in the same field
 * have the same. Values are what stands in quotes, and words with digits, but for error codes, names of fields such as
 * `field1`, and the status that the service answered.
 *
 * Of a table that is called `s`.
 */
export const shapeColumn = `regexp_replace(regexp_replace(regexp_replace(left(coalesce(s.error, ''), 500),
  '"[^"]*("|$)', '"…"', 'g'),
  '(?<!\\w)''[^'']*''(?!\\w)', '''…''', 'g'),
  '\\m(?<!answered )(?!E\\d{3}\\M)(?![A-Za-z_]{3,}\\d{1,2}\\M)[\\w.:+-]*\\d(?:[\\w.:+-]*\\w)?', '…', 'g')`

/** A name of eight digits for all that have the same state, code and shape of error, and may have arrived alike. */
export const causeColumn = `left(md5(concat_ws(' ', s.state, upper(s.error_code), s.may_have_arrived::text, ${shapeColumn})), 8)`

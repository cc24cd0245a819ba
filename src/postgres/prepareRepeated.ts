import type pg from 'pg'

/** A statement is prepared when a session is asked it for so many times: those that come once are not worth it. */
const timesBefore = 3
/** So many are prepared, and so many counted, for each session: a statement that is written anew each time gets no further. */
const preparedMax = 60
const countedMax = 200

/** What of a client is asked for here. */
type Client = Pick<pg.ClientBase, 'query'>

/**
 * Has a session prepare the statements that come again and again: the server reads and plans each once, and its text goes
 * over the wire once. (Of ours, of two kilobytes each, that is a fourth of the server's work.) Only those with values, for
 * several statements in one text cannot be prepared.
 */
export function prepareRepeated(client: Client): void {
  const times = new Map<string, number>()
  const names = new Map<string, string>()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown

  function nameOf(text: string): string | undefined {
    const known = names.get(text)
    if (known !== undefined || names.size >= preparedMax) return known
    const count = (times.get(text) ?? 0) + 1
    if (count > timesBefore) {
      times.delete(text)
      names.set(text, `repeated_${names.size + 1}`)
    } else if (count > 1 || times.size < countedMax) times.set(text, count)
    else times.clear()
    return names.get(text)
  }

  client.query = ((text: unknown, values: unknown, ...rest: unknown[]) => {
    const name = typeof text === 'string' && Array.isArray(values) && values.length > 0 ? nameOf(text) : undefined
    return name === undefined ? query(text, values, ...rest) : query({ name, text, values }, ...rest)
  }) as typeof client.query
}

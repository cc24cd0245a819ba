import type { Clock } from '../../clock.ts'

/** Who has asked for the values of which records, for a while; and what was done to them a moment ago. */
export interface ShownRecords {
  show(session: string, id: string): void
  hide(session: string, id: string): void
  isShown(session: string, id: string): boolean
  /** Keeps a message for the page of a record, for the one who did it. */
  tell(session: string, id: string, message: string): void
  /** The message, once. */
  told(session: string, id: string): string | null
}

const forMs = 15 * 60_000
const keptMax = 2_000

export function keepShownRecords({ nowMs }: Pick<Clock, 'nowMs'>): ShownRecords {
  const shown = new Map<string, number>()
  const messages = new Map<string, string>()
  const key = (session: string, id: string) => `${session} ${id}`
  return {
    show: (session, id) => put(shown, key(session, id), nowMs() + forMs),
    hide: (session, id) => void shown.delete(key(session, id)),
    isShown: (session, id) => (shown.get(key(session, id)) ?? 0) > nowMs(),
    tell: (session, id, message) => put(messages, key(session, id), message),
    told(session, id) {
      const message = messages.get(key(session, id)) ?? null
      messages.delete(key(session, id))
      return message
    },
  }
}

/** The oldest goes where there is no room. */
function put<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > keptMax && oldest !== undefined) map.delete(oldest)
}

/** Something live on a page: `name`, or `name:key` if there are several. */
export interface LiveTopic {
  /**
   * Reads a short text per key that differs after a change, with one statement. A missing key does not exist. A topic
   * without keys has the key ''.
   */
  readVersions(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
  everyMs: number
}

export type LiveNews =
  | { kind: 'version'; topic: string; version: string }
  /** It cannot be read now; a `version` follows when it can. */
  | { kind: 'trouble'; topic: string; message: string }

/** Reads live topics once for all viewers, and only while somebody looks. */
export interface Live extends Disposable {
  addTopic(name: string, topic: LiveTopic): void
  knows(topic: string): boolean
  /** Tells the present version, then each change. @returns what stops it */
  follow(topic: string, listener: (news: LiveNews) => void): () => void
}

interface Watched {
  name: string
  topic: LiveTopic
  listeners: Map<string, Set<(news: LiveNews) => void>>
  /** The last news of each key, for later viewers. */
  last: Map<string, LiveNews>
  timer: NodeJS.Timeout | undefined
  reading: 'idle' | 'reading' | 'late'
}

/** Several streams of a page begin together, so the first look waits for them. */
const soonMs = 50

/** Tells trouble after this time, so that a page knows within three seconds. */
const lateMs = 2_000

/** @param explain an error in words for the page */
export function createLive(explain: (error: unknown) => string): Live {
  const topics = new Map<string, Watched>()
  let isOver = false

  async function look(watched: Watched): Promise<void> {
    const { topic, listeners } = watched
    if (watched.reading === 'late') tellTrouble(watched, lateMessage) // those who came meanwhile
    if (watched.reading !== 'idle') return
    watched.reading = 'reading'
    const late = setTimeout(() => {
      watched.reading = 'late'
      tellTrouble(watched, lateMessage)
    }, lateMs).unref()
    const keys = [...listeners.keys()]
    try {
      const versions = await topic.readVersions(keys)
      for (const key of keys)
        tell(watched, key, { kind: 'version', topic: fullName(watched, key), version: versions.get(key) ?? '' })
    } catch (error) {
      tellTrouble(watched, explain(error), keys)
    }
    clearTimeout(late)
    watched.reading = 'idle'
    lookLater(watched, topic.everyMs)
  }

  function lookLater(watched: Watched, inMs: number): void {
    clearTimeout(watched.timer)
    watched.timer = undefined
    if (isOver || watched.listeners.size === 0) return
    watched.timer = setTimeout(() => void look(watched), inMs).unref()
  }

  return {
    addTopic(name, topic) {
      const nobody = { listeners: new Map(), last: new Map(), timer: undefined, reading: 'idle' } as const
      topics.set(name, { name, topic, ...nobody })
    },
    knows: (topic) => topics.has(nameAndKey(topic)[0]),
    follow(topic, listener) {
      const [name, key] = nameAndKey(topic)
      const watched = topics.get(name)
      if (watched === undefined) throw new Error(`no topic ${name}`)
      const listeners = watched.listeners.get(key) ?? new Set()
      watched.listeners.set(key, listeners.add(listener))
      const last = watched.last.get(key)
      if (last !== undefined) listener(last)
      else lookLater(watched, soonMs)
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        watched.listeners.delete(key)
        watched.last.delete(key)
        if (watched.listeners.size === 0) lookLater(watched, 0)
      }
    },
    [Symbol.dispose]() {
      isOver = true
      for (const { timer } of topics.values()) clearTimeout(timer)
    },
  }
}

const lateMessage = `The database has not answered for ${lateMs / 1_000} s.`

function tellTrouble(watched: Watched, message: string, keys: Iterable<string> = watched.listeners.keys()): void {
  for (const key of keys) tell(watched, key, { kind: 'trouble', topic: fullName(watched, key), message })
}

function tell({ last, listeners }: Watched, key: string, news: LiveNews): void {
  const own = listeners.get(key)
  if (own === undefined || JSON.stringify(last.get(key)) === JSON.stringify(news)) return
  last.set(key, news)
  for (const listener of own) listener(news)
}

function nameAndKey(topic: string): [name: string, key: string] {
  const at = topic.indexOf(':')
  return at < 0 ? [topic, ''] : [topic.slice(0, at), topic.slice(at + 1)]
}

const fullName = ({ name }: Watched, key: string) => (key === '' ? name : `${name}:${key}`)

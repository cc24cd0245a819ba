import type { Clock } from '../../clock.ts'

/** Something that a page shows and that may change: `name`, or `name:key` where there are several of its kind. */
export interface LiveTopic {
  /**
   * Reads a short text for each key that is other when something has changed: a revision, a time, a hash. One statement for all
   * of them. A key that is not in what it returns is one that does not exist. The one key of a topic without keys is ''.
   */
  readVersions(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** How often it is read while somebody looks. */
  everyMs: number
}

/** What a stream is told. */
export type LiveNews =
  | { kind: 'version'; topic: string; version: string }
  /** It cannot be read at present, or does not come back; a `version` follows when it can. */
  | { kind: 'trouble'; topic: string; message: string }

/** Reads what is looked at, once for all who look, and tells them. Nothing is read while nobody looks. */
export interface Live extends Disposable {
  /** Adds a kind of thing that pages can be told of. */
  addTopic(name: string, topic: LiveTopic): void
  /** Whether `name` or `name:key` is one of those. */
  knows(topic: string): boolean
  /** Tells what stands, and then each change, until it is told to stop. @returns what stops it */
  follow(topic: string, listener: (news: LiveNews) => void): () => void
  /**
   * Makes a reading that all viewers share: what was read less than `forMs` ago is given to whoever asks, and those who ask
   * while it is being read wait for the same.
   */
  share<T>(read: () => Promise<T>, forMs: number): () => Promise<T>
}

interface Watched {
  topic: LiveTopic
  listeners: Map<string, Set<(news: LiveNews) => void>>
  /** What was told last, for those who come later. */
  last: Map<string, LiveNews>
  timer: NodeJS.Timeout | undefined
  isReading: boolean
  /** What is being read has not come back for so long that it is said. */
  isLate: boolean
}

/** @param explain what an error means, in words for the page */
export function createLive(clock: Clock, explain: (error: unknown) => string): Live {
  const topics = new Map<string, Watched>()
  let isOver = false

  async function look(name: string, watched: Watched): Promise<void> {
    if (watched.isReading) {
      if (watched.isLate) tell(watched, lateNews(name, watched)) // to those who came meanwhile
      return
    }
    watched.isReading = true
    const keys = [...watched.listeners.keys()]
    const noticing = setTimeout(() => {
      watched.isLate = true
      tell(watched, lateNews(name, watched))
    }, lateMs).unref()
    const news = await readNews(name, watched.topic, keys, explain)
    clearTimeout(noticing)
    watched.isReading = false
    watched.isLate = false
    tell(watched, news)
    lookLater(name, watched, watched.topic.everyMs)
  }

  function lookLater(name: string, watched: Watched, inMs: number): void {
    clearTimeout(watched.timer)
    watched.timer = undefined
    if (isOver || watched.listeners.size === 0) return
    watched.timer = setTimeout(() => void look(name, watched), inMs).unref()
  }

  return {
    addTopic(name, topic) {
      topics.set(name, {
        topic,
        listeners: new Map(),
        last: new Map(),
        timer: undefined,
        isReading: false,
        isLate: false,
      })
    },
    knows: (topic) => topics.has(split(topic).name),
    follow(topic, listener) {
      const { name, key } = split(topic)
      const watched = topics.get(name)
      if (watched === undefined) throw new Error(`no topic ${name}`)
      const listeners = watched.listeners.get(key) ?? new Set()
      watched.listeners.set(key, listeners.add(listener))
      const last = watched.last.get(key)
      if (last !== undefined) listener(last)
      // A little later: a page of many streams begins all of them at once.
      else lookLater(name, watched, soonMs)
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        watched.listeners.delete(key)
        watched.last.delete(key)
        if (watched.listeners.size === 0) lookLater(name, watched, 0)
      }
    },
    share: (read, forMs) => shared(clock, read, forMs),
    [Symbol.dispose]() {
      isOver = true
      for (const { timer } of topics.values()) clearTimeout(timer)
    },
  }
}

const soonMs = 50

/** A reading that takes so long is said to be late: with the second between two of them a page knows within three. */
const lateMs = 2_000

function lateNews(name: string, { listeners }: Watched): [string, LiveNews][] {
  const message = `The database has not answered for ${lateMs / 1_000} s.`
  return [...listeners.keys()].map((key) => [key, { kind: 'trouble', topic: join(name, key), message }])
}

/** What is new to those who still look. */
function tell({ last, listeners }: Watched, news: readonly [string, LiveNews][]): void {
  for (const [key, told] of news) {
    const those = listeners.get(key)
    if (those === undefined || sameNews(last.get(key), told)) continue
    last.set(key, told)
    for (const listener of those) listener(told)
  }
}

function split(topic: string): { name: string; key: string } {
  const at = topic.indexOf(':')
  return at < 0 ? { name: topic, key: '' } : { name: topic.slice(0, at), key: topic.slice(at + 1) }
}

const join = (name: string, key: string) => (key === '' ? name : `${name}:${key}`)

async function readNews(
  name: string,
  topic: LiveTopic,
  keys: readonly string[],
  explain: (error: unknown) => string,
): Promise<[string, LiveNews][]> {
  try {
    const versions = await topic.readVersions(keys)
    return keys.map((key) => [key, { kind: 'version', topic: join(name, key), version: versions.get(key) ?? '' }])
  } catch (error) {
    const message = explain(error)
    return keys.map((key) => [key, { kind: 'trouble', topic: join(name, key), message }])
  }
}

function sameNews(one: LiveNews | undefined, other: LiveNews): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

function shared<T>(clock: Clock, read: () => Promise<T>, forMs: number): () => Promise<T> {
  let reading: Promise<T> | undefined
  let ageMs: () => number = () => Number.POSITIVE_INFINITY
  return () => {
    if (reading !== undefined && ageMs() < forMs) return reading
    const begun = read()
    reading = begun
    ageMs = () => 0 // until it is read
    begun.then(
      () => {
        ageMs = clock.stopwatch()
      },
      () => {
        if (reading === begun) reading = undefined
      },
    )
    return begun
  }
}

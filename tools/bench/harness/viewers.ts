/** People who look at pages: what assets/console.js does, without the browser around it. */
export interface Viewers extends Disposable {
  /** How often a page was read again since they began to look, all together. */
  readonly renewals: number
}

/** Opens a page for each path, and the stream that it names, if it does; each reads its page again when it is told that it has changed. */
export async function openViewers(origin: string, paths: readonly string[]): Promise<Viewers> {
  const leaving = new AbortController()
  const counts = { renewals: 0 }
  await Promise.all(paths.map((path) => look(origin + path, leaving.signal, counts)))
  return {
    get renewals() {
      return counts.renewals
    },
    [Symbol.dispose]: () => leaving.abort(),
  }
}

async function look(url: string, signal: AbortSignal, counts: { renewals: number }): Promise<void> {
  const page = await (await fetch(url, { signal })).text()
  const [, topic] = /<body data-topic="([^"]+)"/.exec(page) ?? []
  if (topic === undefined) return
  const stream = await fetch(new URL(`/live?on=${encodeURIComponent(topic)}`, url), { signal })
  if (stream.status !== 200 || stream.body === null) throw new Error(`/live?on=${topic} is answered ${stream.status}`)
  const follow = async (events: AsyncIterable<Uint8Array>) => {
    for await (const chunk of events) {
      if (!new TextDecoder().decode(chunk).includes('event: version')) continue
      await (await fetch(url, { signal })).text()
      counts.renewals += 1
    }
  }
  follow(stream.body).catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

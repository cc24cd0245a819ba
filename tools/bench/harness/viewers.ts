import { setTimeout } from 'node:timers/promises'

/** Viewers of pages. They do what assets/console.js does, without a browser. */
export interface Viewers extends Disposable {
  /** How often pages were read again, for all viewers together. */
  readonly renewals: number
}

/** Opens a page for each path. Each viewer reads the page again when the version of the page changes. */
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

/** As assets/console.js. */
const lookEveryMs = 1_500

async function look(url: string, signal: AbortSignal, counts: { renewals: number }): Promise<void> {
  const page = await (await fetch(url, { signal })).text()
  const [, watched, version] = /<body data-watch="([^"]+)" data-version="([^"]+)"/.exec(page) ?? []
  if (watched === undefined) return
  const follow = async () => {
    for (let shown = version; ; ) {
      await setTimeout(lookEveryMs, undefined, { signal })
      const answer = await fetch(new URL(watched, url), { signal })
      if (!answer.ok) throw new Error(`${watched} is answered ${answer.status}`)
      const told = ((await answer.json()) as { version: string }).version
      if (told === shown) continue
      shown = told
      await (await fetch(url, { signal })).text()
      counts.renewals += 1
    }
  }
  follow().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
}

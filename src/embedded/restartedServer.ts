import type { ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { endServer } from './postgresServer.ts'

/** A server that ends `endsMax` times within `withinMs` is not started again. */
const endsMax = 3
const withinMs = 60_000

/** If somebody ends it together with us, their signal reaches us in this time. */
const pauseMs = 100

const wordsMax = 2000

/** A server that is started again if it ends unasked: killed, or out of memory. Its data survive that as they survive a crash. */
export class RestartedServer {
  readonly #start: () => Promise<ChildProcess>
  readonly #tell: (words: string) => void
  readonly #failed = Promise.withResolvers<string>()
  readonly #stopping = new AbortController()
  #endedMs: number[] = []
  #server: ChildProcess
  #restarting = Promise.resolve()
  #said = ''

  private constructor(server: ChildProcess, start: () => Promise<ChildProcess>, tell: (words: string) => void) {
    this.#start = start
    this.#tell = tell
    this.#server = server
    this.#watch(server)
  }

  /** @param tell is given one sentence when the server is started again */
  static async start(start: () => Promise<ChildProcess>, tell: (words: string) => void): Promise<RestartedServer> {
    return new RestartedServer(await start(), start, tell)
  }

  get pid(): number {
    return this.#server.pid as number
  }

  /** Resolves with what happened, and its last words, when it has ended three times within a minute: it is not started again. */
  get failed(): Promise<string> {
    return this.#failed.promise
  }

  async stop(signal: 'SIGQUIT' | 'SIGINT'): Promise<void> {
    this.#stopping.abort()
    await this.#restarting
    await endServer(this.#server, signal)
  }

  #watch(server: ChildProcess): void {
    this.#server = server
    server.stderr?.on('data', (chunk: Buffer) => {
      this.#said = (this.#said + chunk.toString()).slice(-wordsMax)
    })
    server.once('exit', (code, signal) => {
      if (!this.#stopping.signal.aborted) this.#restarting = this.#startAgain(signal ?? `exit code ${code}`)
    })
  }

  async #startAgain(ending: string): Promise<void> {
    const nowMs = performance.now()
    this.#endedMs = [...this.#endedMs.filter((endMs) => nowMs - endMs < withinMs), nowMs]
    if (this.#endedMs.length >= endsMax) {
      this.#failed.resolve(
        `its PostgreSQL ended ${endsMax} times within a minute (${ending}); it said last: ${this.#said.trim()}`,
      )
      return
    }
    await delay(pauseMs)
    if (this.#stopping.signal.aborted) return
    this.#tell(`its PostgreSQL ended (${ending}) and is started again`)
    const server = await this.#start().catch((error: Error) => error)
    if (!(server instanceof Error)) return this.#watch(server)
    this.#said = server.message
    return this.#startAgain('it did not start')
  }
}

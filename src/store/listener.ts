import pg from 'pg'

export interface Listener {
  close(): Promise<void>
}

export interface ListenerDeps {
  url: string
  channel: string
  onNotice(): void
  /** The connection broke; it will be opened again. */
  onError(error: Error): void
}

const reconnectMs = 2_000

/**
 * Listens to a channel for as long as it is open, connecting again after every break. Notices can be missed, and a
 * half-open connection never tells: whoever listens must also look by itself now and then.
 */
export function openListener({ url, channel, onNotice, onError }: ListenerDeps): Listener {
  let closed = false
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined

  function again(error: Error) {
    if (closed || timer) return
    onError(error)
    hangUp(client)
    timer = setTimeout(() => {
      timer = undefined
      void connect()
    }, reconnectMs)
  }

  async function connect() {
    const next = new pg.Client({
      connectionString: url,
      application_name: 'outboxd listen',
      keepAlive: true,
      connectionTimeoutMillis: 5_000,
      statement_timeout: 5_000,
      query_timeout: 6_000,
    })
    client = next
    next.on('error', again)
    next.on('end', () => again(new Error('the connection that listens was ended')))
    next.on('notification', onNotice)
    try {
      await next.connect()
      await next.query(`listen ${pg.escapeIdentifier(channel)}`)
      onNotice() // what came while nobody listened
    } catch (error) {
      again(error as Error)
    }
  }

  void connect()
  return {
    async close() {
      closed = true
      clearTimeout(timer)
      hangUp(client)
    },
  }
}

/** Ends the connection without waiting for the server's goodbye: half open, it would never come. */
function hangUp(client: pg.Client | undefined): void {
  void client?.end().catch(() => {})
  client?.connection.stream.destroy()
}

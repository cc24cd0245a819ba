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
const lookEveryMs = 10_000
const answerMs = 5_000 // no statement_timeout beside it: a pooler refuses that as a session begins

/**
 * Listens to a channel for as long as it is open, connecting again after every break, and where the server became
 * read-only: what is written now is written, and announced, elsewhere. Notices can be missed: whoever listens must also
 * look by itself now and then.
 */
export function openListener({ url, channel, onNotice, onError }: ListenerDeps): Listener {
  let closed = false
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let looking: NodeJS.Timeout | undefined

  function again(error: Error) {
    if (closed || timer) return
    onError(error)
    clearInterval(looking)
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
      query_timeout: answerMs,
    })
    client = next
    next.on('error', again)
    next.on('end', () => again(new Error('the connection that listens was ended')))
    next.on('notification', onNotice)
    try {
      await next.connect()
      await next.query(`listen ${pg.escapeIdentifier(channel)}`)
      onNotice() // what came while nobody listened
      const wasReadOnly = await isReadOnly(next)
      looking = setInterval(() => void look(next, wasReadOnly).catch(again), lookEveryMs)
    } catch (error) {
      again(error as Error)
    }
  }

  async function look(listening: pg.Client, wasReadOnly: boolean) {
    if ((await isReadOnly(listening)) && !wasReadOnly)
      throw new Error('the server that is listened to became read-only')
  }

  void connect()
  return {
    async close() {
      closed = true
      clearTimeout(timer)
      clearInterval(looking)
      hangUp(client)
    },
  }
}

async function isReadOnly(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ on: boolean }>(`select current_setting('transaction_read_only')::boolean as on`)
  return rows[0]?.on ?? false
}

/** Ends the connection without waiting for the server's goodbye: half open, it would never come. */
function hangUp(client: pg.Client | undefined): void {
  void client?.end().catch(() => {})
  client?.connection.stream.destroy()
}

import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { listenOnLoopback } from '../../test/support/listenOnLoopback.ts'

/** An alert in a notification of Alertmanager. */
export interface ToldAlert {
  status: 'firing' | 'resolved'
  labels: Record<string, string> & { alertname: string; job?: string }
  annotations: Record<string, string>
}

/** A notification: one call or one mail. */
export interface Notification {
  /** Time by performance.now(). */
  atMs: number
  receiver: string
  /** Alertmanager's group: one incident, or one thread of mails. */
  groupKey: string
  alerts: ToldAlert[]
}

/** Receives the calls and mails of an Alertmanager whose receivers are webhooks. */
export interface Telephone extends AsyncDisposable {
  readonly url: string
  onNotification(listener: (notification: Notification) => void): void
}

export async function startTelephone(): Promise<Telephone> {
  const listeners: ((notification: Notification) => void)[] = []
  const server = createServer(async (request, response) => {
    const { receiver, groupKey, alerts } = (await json(request)) as Omit<Notification, 'atMs'>
    response.end()
    for (const listener of listeners) listener({ atMs: performance.now(), receiver, groupKey, alerts })
  })
  return {
    ...(await listenOnLoopback(server)),
    onNotification: (listener) => void listeners.push(listener),
  }
}

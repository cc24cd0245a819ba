import type { StoreConfig } from '../config.ts'
import { captureProblems } from '../daemon/capture/captureProblems.ts'
import { readCaptureTrouble } from '../outbox/captureTrouble.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import type { Finding } from './finding.ts'

/** Says which changes of the ERP's tables are not captured (deploy/change-capture), and whether it lends rights to other roles. @returns null if all is well */
export async function checkCapture({ databaseUrl: url }: StoreConfig): Promise<Finding | null> {
  const trouble = await inspectDatabase({ variable: 'DATABASE_URL', url, look: readCaptureTrouble }).catch(() => null)
  if (trouble === null || trouble.length === 0) return null // a database that is away is told as the outbox
  const message = captureProblems(trouble).map(({ subject, detail }) => `${subject}: ${detail}`)
  return {
    what: 'change capture',
    mark: 'problem',
    message: [
      ...message,
      'Then capture what was noted: `select * from outboxd_capture.retry()` in the ERP’s database, as the role that installed it.',
    ].join('\n'),
  }
}

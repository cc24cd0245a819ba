import type { StoreConfig } from '../config.ts'
import { captureProblems } from '../daemon/capture/captureProblems.ts'
import { readCaptureTrouble } from '../outbox/captureTrouble.ts'
import { inspectDatabase } from '../store/inspectDatabase.ts'
import type { Finding } from './finding.ts'

/** Says which changes of the ERP's tables are not captured (deploy/change-capture). @returns null where all are, or none is to be */
export async function checkCapture({ databaseUrl: url }: StoreConfig): Promise<Finding | null> {
  const trouble = await inspectDatabase({ variable: 'DATABASE_URL', url, look: readCaptureTrouble }).catch(() => null)
  if (trouble === null || trouble.length === 0) return null // a database that is away is told as the outbox
  const message = captureProblems(trouble).map(({ subject, detail }) => `${subject}: ${detail}`)
  return {
    what: 'change capture',
    mark: 'problem',
    message: [...message, 'When that is mended: select * from outboxd_capture.retry() in the ERP’s database.'].join(
      '\n',
    ),
  }
}

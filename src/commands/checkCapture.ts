import type { StoreConfig } from '../config.ts'
import { captureProblems, readCaptureTrouble } from '../outbox/captureTrouble.ts'
import { inspectDatabase } from '../postgres/inspectDatabase.ts'
import { type Finding, finding } from './check/finding.ts'

/** Says which changes of the ERP's tables are not captured (deploy/change-capture), and whether it lends rights to other roles. Returns nothing if all is well. */
export async function checkCapture({ databaseUrl: url }: StoreConfig): Promise<Finding[]> {
  const trouble = await inspectDatabase({ variable: 'DATABASE_URL', url, look: readCaptureTrouble }).catch(() => null)
  if (trouble === null || trouble.length === 0) return [] // a database that is away is told as the outbox
  return [
    finding(
      'change capture',
      'problem',
      ...captureProblems(trouble).map(({ subject, detail }) => `${subject}: ${detail}`),
      'Then capture what was noted: `select * from outboxd_capture.retry()` in the ERP’s database, as the role that installed it.',
    ),
  ]
}

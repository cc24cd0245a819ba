import { hash } from 'node:crypto'
import type { Submission } from '../model/submission.ts'

/** A record's id is a UUID, so it is the id of the record's trace: each instance adds spans without asking another. */
export const traceIdOf = (submissionId: string): string => submissionId.replaceAll('-', '')

/** The span that is the parent of all others of the record. */
export const rootSpanIdOf = (submissionId: string): string => traceIdOf(submissionId).slice(16)

type Asked = Pick<Submission, 'id' | 'revision'>

/** The revision goes up with each step, so that each request of the record has a span id of its own. */
export const requestSpanIdOf = ({ id, revision }: Asked): string => hash('sha256', `${id} ${revision}`).slice(0, 16)

/** The header that tells the service which span the request belongs to. @see W3C Trace Context, 3.2 */
export const traceparentOf = (asked: Asked): string => `00-${traceIdOf(asked.id)}-${requestSpanIdOf(asked)}-01`

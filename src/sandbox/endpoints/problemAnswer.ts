import { STATUS_CODES } from 'node:http'
import type { FastifyReply } from 'fastify'

export interface Answer {
  status: number
  headers: Record<string, string>
  contentType: string
  body: unknown
}

/** docs/reference/interface.md, 7.2. */
type ErrorCode = 'E001' | 'E002' | 'E003'

/** `field` is a dotted path. */
export interface FieldError {
  field: string
  detail: string
}

interface Particulars {
  code?: string
  errors?: FieldError[]
}

/**
 * A refusal's body. `applyRefusalSettings` gives it the configured shape.
 * @see RFC 9457
 */
export class ProblemDetails {
  readonly type = 'about:blank'
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code?: string
  readonly errors?: FieldError[]

  constructor(status: number, detail: string, { code, errors }: Particulars) {
    this.title = (isErrorCode(code) && errorTitles[code]) || STATUS_CODES[status] || 'Error'
    this.status = status
    this.detail = detail
    if (code !== undefined) this.code = code
    if (errors !== undefined) this.errors = errors
  }
}

export const errorTitles: Record<ErrorCode, string> = {
  E001: 'Invalid customer',
  E002: 'Duplicate transaction',
  E003: 'Service unavailable',
}

export const jsonContentType = 'application/json; charset=utf-8'
export const problemContentType = 'application/problem+json; charset=utf-8'

export function successAnswer(body: unknown, status = 200): Answer {
  return { status, headers: {}, contentType: jsonContentType, body }
}

export function refusalAnswer(
  status: number,
  detail: string,
  more: Particulars = {},
  headers: Record<string, string> = {},
): Answer {
  return { status, headers, contentType: problemContentType, body: new ProblemDetails(status, detail, more) }
}

/** A 401 names the scheme that the client tried, or Basic. @see RFC 6749, 5.2 */
export function tokenErrorAnswer(status: number, error: string, description: string, authorization?: string): Answer {
  const headers: Record<string, string> = { 'cache-control': 'no-store', pragma: 'no-cache' }
  const scheme = /^bearer\b/i.test(authorization ?? '') ? 'Bearer' : 'Basic'
  if (status === 401) headers['www-authenticate'] = `${scheme} realm="sandbox"`
  return { ...successAnswer({ error, error_description: description }, status), headers }
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return code !== undefined && code in errorTitles
}

export function sendAnswer(reply: FastifyReply, { status, headers, contentType, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).header('content-type', contentType).send(JSON.stringify(body))
}

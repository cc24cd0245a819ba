import { gzipSync } from 'node:zlib'
import { type Answer, jsonContentType, refusalAnswer } from '../endpoints/problemAnswer.ts'
import type { FaultAction } from './faults.ts'

export type Delivery =
  | { kind: 'drop' }
  | {
      kind: 'answer'
      status: number
      headers: Record<string, string>
      contentType: string
      body: string | Buffer
      /** Milliseconds between bytes of the body; 0 sends the body whole. */
      byteIntervalMs: number
    }

export function isStoppedBeforeProcessing(spec: FaultAction | undefined): boolean {
  if (spec === undefined || spec.kind === 'delay') return false
  return 'when' in spec && spec.when === 'before'
}

export interface AnswerStyle {
  headers: Record<string, string>
  present(answer: Answer): Answer
  isGzip: boolean
  newWrongId(): string
}

export function applyFault(answer: Answer, fault: FaultAction | undefined, style: AnswerStyle): Delivery {
  if (fault?.kind === 'drop') return { kind: 'drop' }
  const told = style.present(answer)
  const faulty = fault === undefined ? told : faultyAnswer(told, fault, style)
  const text = typeof faulty.body === 'string' ? faulty.body : JSON.stringify(faulty.body)
  const gzip = style.isGzip || fault?.kind === 'gzip'
  return {
    kind: 'answer',
    status: faulty.status,
    headers: { ...style.headers, ...faulty.headers, ...(gzip ? { 'content-encoding': 'gzip' } : {}) },
    contentType: faulty.contentType,
    body: gzip ? gzipSync(text) : text,
    byteIntervalMs: fault?.kind === 'drip' ? fault.intervalMs : 0,
  }
}

function faultyAnswer(answer: Answer, spec: FaultAction, { present, newWrongId }: AnswerStyle): Answer {
  switch (spec.kind) {
    case 'answer':
      return present(toldAnswer(spec))
    case 'redirect':
      return present(
        refusalAnswer(
          spec.status,
          'A fault of the sandbox redirects this request.',
          {},
          { location: located(spec.location, answer.body) },
        ),
      )
    case 'garbage':
      return { ...answer, body: spec.body }
    case 'oversized':
    case 'gzip':
      return spec.bytes === 0 ? answer : withFields(answer, { padding: 'x'.repeat(spec.bytes) })
    case 'missing_id':
      return withFields(answer, { transactionId: undefined, orderId: undefined, access_token: undefined })
    case 'wrong_id':
      return withFields(answer, renamed(answer.body, spec.id ?? newWrongId()))
    case 'unknown_status':
      return withFields(answer, { status: spec.value })
    case 'delay':
    case 'drip':
    case 'drop':
      return answer
    default:
      return spec satisfies never
  }
}

function located(location: string, body: unknown): string {
  const { transactionId, orderId } = isObject(body) ? body : {}
  return location.replaceAll('{id}', String(transactionId ?? orderId ?? ''))
}

function toldAnswer(spec: Extract<FaultAction, { kind: 'answer' }>): Answer {
  const told = refusalAnswer(
    spec.status,
    'A fault of the sandbox gave this answer.',
    spec.code === undefined ? {} : { code: spec.code },
    spec.headers,
  )
  const contentType = spec.contentType ?? (spec.body === undefined ? told.contentType : jsonContentType)
  return { ...told, contentType, body: spec.body === undefined ? told.body : spec.body }
}

function withFields(answer: Answer, fields: Record<string, unknown>): Answer {
  return isObject(answer.body) ? { ...answer, body: { ...answer.body, ...fields } } : answer
}

function renamed(body: unknown, id: string): Record<string, unknown> {
  if (!isObject(body)) return {}
  return 'orderId' in body ? { orderId: id } : { transactionId: id }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

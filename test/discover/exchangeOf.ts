import type { Exchange } from '../../src/discover/exchange.ts'

/** An exchange whose answer has only a status and a code. */
export function called(
  accessToken: string,
  startedAtMs: number,
  status: number,
  path: string,
  code: string | null = null,
): Exchange {
  return {
    purpose: 'a question',
    method: 'GET',
    origin: 'http://127.0.0.1',
    path,
    headers: {},
    body: null,
    accessToken,
    startedAtMs,
    answer: response(status, {}, code),
  }
}

export const response = (status: number, json: unknown, code: string | null = null): Exchange['answer'] => ({
  kind: 'response',
  status,
  headers: {},
  text: JSON.stringify(json),
  unreadable: null,
  json,
  code,
  tookMs: 10,
})

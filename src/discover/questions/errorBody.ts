import { type Exchange, fieldOf, isRefusal, type Response } from '../exchange.ts'
import { type Finding, sure, unknown } from '../finding.ts'
import type { Question } from '../question.ts'
import { firstCallSample } from '../samples/firstCall.ts'

export const errorBody: Question = {
  name: 'error-body',
  section: '7',
  asks: 'the shape of an error’s body, and where its code stands',
  requestsMax: 0,
  recordsMax: 0,
  samples: [firstCallSample],
  needs: [],
  harmless: true,
  async run(parts) {
    return judgeErrorBody(parts.exchanges())
  },
}

/** Of all refusals so far the one that says most, which is one with a code. Pure. */
export function judgeErrorBody(exchanges: readonly Exchange[]): Finding {
  const assumed = 'any: the code is found in the usual places'
  const refusals = exchanges
    .filter(({ path }) => path.includes('/api/'))
    .flatMap(({ answer }) => (answer.kind === 'response' && isRefusal(answer) ? [answer] : []))
  const seen =
    refusals.find(({ code }) => code !== null && serviceCode.test(code)) ?? refusals.find(hidesCode) ?? refusals[0]
  if (seen === undefined) return unknown('nothing was refused', { assumed })
  const shape = shapeOf(seen)
  if (hidesCode(seen))
    return sure(shape, `${seen.status} ${seen.text.slice(0, 200)}`, {
      assumed,
      differs: true,
      cannot:
        'the daemon does not find the code in this body: E001, E002 and E003 are judged by their HTTP status alone',
    })
  const place =
    seen.code !== null && serviceCode.test(seen.code)
      ? `the code stands in ${placeOf(seen.json, seen.code)}`
      : 'no error with a code was seen'
  return sure(shape, `${place}: ${seen.status} ${seen.text.replace(/\s+/g, ' ').slice(0, 200)}`, { assumed })
}

const serviceCode = /^E\d{3}$/

/** A code stands in it, and the daemon does not read it. */
const hidesCode = ({ text, code }: Response) => /\bE00[123]\b/.test(text) && (code === null || !serviceCode.test(code))

/** In a word. Pure. */
export function shapeOf({ headers, json, text }: Pick<Response, 'headers' | 'json' | 'text'>): string {
  if (text.trim() === '') return 'empty'
  if (/^\s*</.test(text)) return 'page'
  if (json === undefined) return 'text'
  if (/problem\+json/i.test(headers['content-type'] ?? ''))
    return fieldOf(json, 'code') === undefined && /\bE\d{3}$/.test(String(fieldOf(json, 'type')))
      ? 'problem type'
      : 'problem document'
  if (Array.isArray(json)) return 'list'
  if (typeof json !== 'object' || json === null) return 'bare value'
  if (Array.isArray(fieldOf(json, 'errors'))) return 'errors[]'
  if (typeof fieldOf(json, 'error') === 'object') return 'error.code'
  for (const name of ['errorCode', 'error_code', 'code', 'error', 'message'])
    if (fieldOf(json, name) !== undefined) return name
  return `object: ${Object.keys(json).slice(0, 5).join(', ')}`
}

/** Where a code stands, as a path. */
function placeOf(json: unknown, code: string): string {
  const places = placesOf(json, code, '')
  return places[0] ?? 'the text'
}

function placesOf(json: unknown, code: string, at: string): string[] {
  if (typeof json === 'string') return json.trim().endsWith(code) ? [at || '(the whole)'] : []
  if (typeof json !== 'object' || json === null) return []
  return Object.entries(json).flatMap(([key, value]) =>
    placesOf(value, code, Array.isArray(json) ? `${at}[]` : at === '' ? key : `${at}.${key}`),
  )
}

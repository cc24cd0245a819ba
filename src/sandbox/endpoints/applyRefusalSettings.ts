import type { ErrorShape } from '../interfaceGapSettings.ts'
import type { LiveSettings } from '../sandboxSettings.ts'
import { type Answer, jsonContentType, ProblemDetails, problemContentType } from './problemAnswer.ts'

export function applyRefusalSettings(answer: Answer, live: LiveSettings, serviceTimeUs: number): Answer {
  const { body, headers } = answer
  const retryAfter = headers['retry-after']
  const timed = retryAfter === undefined ? answer : { ...answer, headers: timedHeaders(headers, live, serviceTimeUs) }
  if (!(body instanceof ProblemDetails)) return timed
  const { errorShape, unauthorizedShape } = live
  const name = answer.status === 401 && unauthorizedShape !== 'same' ? unauthorizedShape : errorShape
  const { contentType, body: shaped } = errorShapes[name]
  return { ...timed, contentType, body: shaped(body) }
}

function timedHeaders(headers: Record<string, string>, { retryAfterForm }: LiveSettings, serviceUs: number) {
  const { 'retry-after': seconds, ...others } = headers
  if (retryAfterForm === 'none') return others
  return retryAfterForm === 'seconds' ? headers : { ...others, 'retry-after': later(serviceUs, Number(seconds)) }
}

/** HTTP dates have whole seconds: round up, so that the date is never early. */
function later(us: number, seconds: number): string {
  return new Date((Math.ceil(us / 1_000_000) + seconds) * 1000).toUTCString()
}

interface Shape {
  contentType: string
  body(problem: ProblemDetails): unknown
}

const textType = 'text/plain; charset=utf-8'
const words = ({ code, title, detail }: ProblemDetails) => [code, title, detail].filter(Boolean).join(': ')

const errorShapes: Record<ErrorShape, Shape> = {
  problem: { contentType: problemContentType, body: (problem) => problem },
  code: { contentType: jsonContentType, body: ({ code, detail }) => ({ code, message: detail }) },
  errorCode: { contentType: jsonContentType, body: ({ code, detail }) => ({ errorCode: code, errorMessage: detail }) },
  error: { contentType: jsonContentType, body: ({ code, detail }) => ({ error: { code, message: detail } }) },
  errors: {
    contentType: jsonContentType,
    body: ({ code, detail, errors }) => ({
      errors: errors?.map(({ field, detail }) => ({ code, field, message: detail })) ?? [{ code, message: detail }],
    }),
  },
  type: {
    contentType: problemContentType,
    body: ({ type, title, status, detail, code }) => ({
      type: code === undefined ? type : `https://service.example/errors/${code}`,
      title,
      status,
      detail,
    }),
  },
  text: { contentType: textType, body: words },
  html: {
    contentType: 'text/html; charset=utf-8',
    body: (problem) => `<!doctype html><title>${problem.status}</title><h1>${escaped(words(problem))}</h1>\n`,
  },
  empty: { contentType: textType, body: () => '' },
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

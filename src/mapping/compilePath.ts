import { type Invalid, invalid, isObject, nameJsonKind, type PayloadValue } from '../yaml/exactJson.ts'
import type { PayloadRead, ReadPath } from './mapping.ts'

type Step = string | number

const pathStep = /(?:^|\.)([^.[\]"]+)|\[(\d{1,6})\]|\[("(?:[^"\\]|\\.)*")\]/y

/**
 * Compiles a path such as `customer.addresses[0].city`. A key with dots or brackets is written `["odd.key"]`. Below an
 * absent or null key, the value is missing. Below a value of the wrong kind, the result is invalid.
 */
export function compilePath(from: string): ReadPath | Invalid {
  const steps = parsePath(from)
  if (steps === null) return invalid(`"${from}" is not a path: write it like customer.addresses[0].city`)
  if (typeof steps[0] === 'number') return invalid(`"${from}" begins with an index, but a payload is an object`)
  return (payload) => follow(steps, payload)
}

export function firstKeyOfPath(from: string): string | null {
  const [first] = parsePath(from) ?? []
  return typeof first === 'string' ? first : null
}

function parsePath(from: string): Step[] | null {
  const steps: Step[] = []
  pathStep.lastIndex = 0
  while (pathStep.lastIndex < from.length) {
    const match = pathStep.exec(from)
    if (match === null) return null
    const [, key, index, quoted] = match
    if (index !== undefined) steps.push(Number(index))
    else {
      const step = quoted === undefined ? key?.trim() : unquote(quoted)
      if (step === undefined || step === '') return null
      steps.push(step)
    }
  }
  return steps.length > 0 ? steps : null
}

function unquote(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted)
  } catch {
    return undefined
  }
}

const missing: PayloadRead = { kind: 'missing' }

function follow(steps: readonly Step[], payload: PayloadValue): PayloadRead {
  let value: PayloadValue | undefined = payload
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i] as Step
    if (typeof step === 'number') {
      if (!Array.isArray(value)) return wrongTurn(steps, i, value, 'an array')
      value = (value as readonly PayloadValue[])[step]
    } else {
      if (!isObject(value)) return wrongTurn(steps, i, value, 'an object')
      value = Object.hasOwn(value, step) ? value[step] : undefined
    }
    if (value === undefined) return missing
    if (value === null && i < steps.length - 1) return missing
  }
  return { kind: 'found', value }
}

function wrongTurn(steps: readonly Step[], at: number, value: PayloadValue, expected: string): Invalid {
  return invalid(`cannot be read: ${writePath(steps.slice(0, at))} is ${nameJsonKind(value)}, not ${expected}`)
}

function writePath(steps: readonly Step[]): string {
  const [first = '', ...rest] = steps
  return [first, ...rest.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))].join('')
}

import type { z } from 'zod'
import {
  allowedWordsOfSetting,
  interfaceGapSettings,
  interfaceGapSettingsByTopic,
} from '../../src/sandbox/interfaceGapSettings.ts'
import { settingVariables } from '../../src/sandbox/readEnvironment.ts'
import { optionsSchema } from '../../src/sandbox/sandboxSettings.ts'

type Name = keyof typeof settingVariables

/** Settings that are also options of the command. */
const options: Partial<Record<Name, string>> = {
  ...{ embedded: '--embedded', dataDir: '--data', host: '--host', port: '--port', seed: '--seed', clock: '--clock' },
  ...{ scenario: '--scenario', insecureDefaults: '--insecure-defaults' },
}
const names = Object.keys(optionsSchema.shape)
const live = new Set(names.slice(names.indexOf('rateLimitRequests')))

/** The tables of the sandbox's settings: fixed at the start, changeable, and about what the interface does not show. */
export function sandboxSettingsTables(): { fixed: string; live: string; notShown: string } {
  const own = (Object.keys(settingVariables) as Name[]).filter((name) => !(name in interfaceGapSettings))
  const simpleRow = (name: Name) => row(nameAndOption(name), defaultOf(name), describe(name))
  const simpleHead = ['| setting | default | |', '|---|---|---|']
  const notShown = Object.entries(interfaceGapSettingsByTopic).flatMap(([topic, shape]) => [
    row(topic, '', ''),
    ...Object.entries<z.ZodType>(shape).map(([name, schema]) =>
      row(name, valuesOf(name as Name, schema), describe(name as Name)),
    ),
  ])
  return {
    fixed: [...simpleHead, ...own.filter((name) => !live.has(name)).map(simpleRow)].join('\n'),
    live: [...simpleHead, ...own.filter((name) => live.has(name)).map(simpleRow)].join('\n'),
    notShown: ['| setting | values, the default first | |', '|---|---|---|', ...notShown].join('\n'),
  }
}

function nameAndOption(name: Name): string {
  return options[name] === undefined ? name : `${name}, \`${options[name]}\``
}

function defaultOf(name: Name): string {
  const value = optionsSchema.shape[name].safeParse(undefined).data
  return value === undefined || value === null ? '' : `\`${value}\``
}

/** Lists all values of an enum. The bodies of errorShape have a separate table. */
function valuesOf(name: Name, schema: z.ZodType): string {
  const words = allowedWordsOfSetting(schema).map((each) => `\`${each}\``)
  if (name === 'errorShape') return `${words[0]}, …`
  if (name === 'unauthorizedShape') return `${words[0]}, as errorShape`
  return words.join(', ') || defaultOf(name)
}

function describe(name: Name): string {
  return optionsSchema.shape[name].description ?? ''
}

function row(...cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

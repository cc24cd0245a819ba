import { Argument, type Command } from 'commander'
import { commandTree } from '../cli/commandTree.ts'
import { completionScript, type Shell, shells } from '../cli/completion.ts'
import type { CommandContext } from '../cli/context.ts'
import { exit } from '../cli/exitCodes.ts'

export function describeCompletion(command: Command): Command {
  return command
    .description('print a script that completes commands and options in your shell')
    .addArgument(new Argument('<shell>', 'for which shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  outboxd completion bash > /etc/bash_completion.d/outboxd
  outboxd completion zsh > /usr/local/share/zsh/site-functions/_outboxd
  outboxd completion fish > ~/.config/fish/completions/outboxd.fish
  source <(outboxd completion bash)      for this shell alone`,
    )
}

/** Prints the script, made from what `--help` is made from. */
export async function completion(context: CommandContext, program: Command, shell: Shell): Promise<number> {
  context.stdout.write(completionScript(shell, commandTree(program)))
  return exit.done
}

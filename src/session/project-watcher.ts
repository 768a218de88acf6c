import { messageOf } from "../base/errors.ts";
import type { Emit } from "../message/event.ts";
import type { SessionId } from "../message/ids.ts";
import type { Decider } from "../permission/gate.ts";
import type { SessionSettings } from "../session-state/session-settings.ts";
import type { Command } from "../slash-commands/commands.ts";
import { askConsent } from "../session-state/consent.ts";
import { askAboutServers } from "../session-state/server-consent.ts";
import type { GivenSkill } from "../skill/skill.ts";
import { withGivenSkills } from "./given-skills.ts";
import type { CurrentProject } from "../conversation/current-project.ts";
import type { Project } from "../conversation/project.ts";
import type { SessionInfoStore } from "../conversation/session-info-store.ts";

/** Maximum number of new problems shown after a change; /reload lists all. */
const newProblemsLimit = 5;

export interface ProjectWatcherDeps {
  sessionId: SessionId;
  /** Replaced by each reload. */
  project: CurrentProject;
  /** Loads the project again. */
  reopenProject(): Promise<Project>;
  /** Called before changes are emitted. */
  onReopened(project: Project): void;
  infoStore: SessionInfoStore;
  settings: SessionSettings;
  /** Returns the current slash commands. */
  commands(): readonly Command[];
  gate: Decider;
  emit: Emit;
  /** Shows the user a warning. */
  warn(text: string): void;
}

/** The project of a session, reloaded when its files change between turns. */
export class ProjectWatcher {
  readonly #deps: ProjectWatcherDeps;
  #isConsentSettled = false;
  #areServersSettled = false;

  constructor(deps: ProjectWatcherDeps) {
    this.#deps = deps;
  }

  get current(): Project {
    return this.#deps.project.get();
  }

  /** Replaces the skills that the client gave for the session. */
  giveSkills(skills: readonly GivenSkill[]): void {
    this.#deps.project.adapt((project) => withGivenSkills(project, skills));
  }

  /** Reloads the project from its files and emits what changed. */
  async reload(): Promise<Project> {
    const before = this.#editorView();
    const { consent } = this.current;
    this.#deps.project.replace(await this.#deps.reopenProject());
    const reopened = this.current;
    if (JSON.stringify(reopened.consent?.wants) !== JSON.stringify(consent?.wants))
      this.#isConsentSettled = false;
    this.#deps.onReopened(reopened);
    await this.#emitChanges(before, this.#editorView());
    return reopened;
  }

  /**
   * Reloads the project if configuration files changed. If they cannot be read, the session keeps its configuration.
   */
  async refresh(): Promise<void> {
    const known = new Set(this.current.problems);
    try {
      if (!(await this.current.hasChanged())) return;
      const { problems } = await this.reload();
      const added = problems.filter((problem) => !known.has(problem));
      for (const text of added.slice(0, newProblemsLimit)) this.#deps.warn(text);
      const more = added.length - newProblemsLimit;
      if (more > 0) this.#deps.warn(`And ${more} more problems of the configuration: /reload lists them.`);
    } catch (error) {
      this.#deps.warn(
        `The configuration could not be reloaded: ${messageOf(error)}. The session continues with the previous configuration.`,
      );
    }
  }

  /**
   * Asks the user once to trust the project's configuration, and reloads it if accepted. Returns whether the turn
   * continues: an editor may answer "cancelled" before it sends the cancel.
   */
  async settleConsent(signal: AbortSignal): Promise<boolean> {
    const { consent } = this.current;
    if (consent === undefined || this.#isConsentSettled) return true;
    const { sessionId, gate, emit, settings } = this.#deps;
    const answer = await askConsent({ sessionId, gate, emit, agent: settings.agent.name }, consent, signal);
    this.#isConsentSettled = answer === "accepted" || answer === "declined";
    if (answer === "accepted") await this.reload();
    return answer !== "cancelled";
  }

  /**
   * Asks the user once per project about installed language servers. Returns whether the turn continues. Without an
   * answer they are not used.
   */
  async settleLanguageServers(signal: AbortSignal): Promise<boolean> {
    if (this.#areServersSettled || signal.aborted) return !signal.aborted;
    const { sessionId, gate, emit, settings } = this.#deps;
    try {
      const offered = await this.current.languages?.offered();
      this.#areServersSettled = true;
      if (offered === undefined) return true;
      const deps = { sessionId, gate, emit, agent: settings.agent.name };
      const answer = await askAboutServers(deps, offered, signal);
      this.#areServersSettled = answer !== "cancelled";
      if (answer === "accepted") await this.reload();
      return answer !== "cancelled";
    } catch (error) {
      this.#deps.warn(`Language servers are not used: ${messageOf(error)}`);
      return true;
    }
  }

  async #emitChanges(before: EditorView, now: EditorView): Promise<void> {
    const { sessionId, emit, infoStore } = this.#deps;
    if (now.agent !== before.agent) emit({ sessionId, type: "agent", agent: now.agent });
    else if (now.pickers !== before.pickers) emit({ sessionId, type: "model", model: infoStore.info.model });
    if (now.commands !== before.commands) emit({ sessionId, type: "commands" });
  }

  #editorView(): EditorView {
    const { settings } = this.#deps;
    const { agents, models } = this.current;
    const listed = [...agents.values()].map(({ name, description, mode, hidden }) => {
      return { name, description, mode, hidden };
    });
    const names = models.list().map(({ ref, name, variants }) => ({ ref, name, variants }));
    const callable = this.#deps
      .commands()
      .map(({ name, description, hint }) => ({ name, description, hint }));
    return {
      agent: settings.agent.name,
      pickers: JSON.stringify({ listed, names, model: settings.model?.ref }),
      commands: JSON.stringify(callable),
    };
  }
}

/** The parts of the project that the editor shows, for comparison. */
interface EditorView {
  agent: string;
  pickers: string;
  commands: string;
}

import type {
  AgentNotificationParamsByMethod,
  AgentRequestParamsByMethod,
  InitializeRequest,
  InitializeResponse,
  LoadSessionRequest,
} from "@agentclientprotocol/sdk/unstable";
import protocolParams from "../../../schema/acp-v1-params.json" with { type: "json" };
import type { ReplayStart } from "../../conversation/visible-messages.ts";
import type { Session } from "../../session/session.ts";
import { parseClientFeatures } from "../client-capabilities.ts";
import type { AcpConnection } from "../connection.ts";
import { createInitializeResult, type ProgramInfo } from "../initialize.ts";
import { createClientOptions, createPickers } from "../view/config-options.ts";
import { AccountRequests } from "./account-requests.ts";
import {
  changeMode,
  changeOption,
  closeSession,
  deleteSession,
  listSessions,
  loadSession,
  newSession,
  parseReplayAfter,
  resumeSession,
} from "./lifecycle.ts";
import { changeModel, forkSession, getStatus, setArchived, setTitle } from "./management.ts";
import {
  replaceInjectionParams,
  revokeInjectionParams,
  rewindParams,
  rewindPointsParams,
  setModelParams,
  steeringParams,
} from "./extensions.ts";
import { type Call, type ProtocolVersion, RowFactory } from "./method-table.ts";
import { cancelTurn, promptTurn, replaceInjection, revokeInjection, steer } from "./prompt-turn.ts";
import { listRewindPoints, rewindSession } from "./rewind.ts";

/** The methods of version 1, including unstable ones and extensions. */
export function createStableVersion(acp: AcpConnection, program: ProgramInfo): ProtocolVersion {
  const account = new AccountRequests(acp);
  const pickers = (session: Session) => createPickers(session, acp.client);
  const opened = (session: Session) => ({ sessionId: session.id, ...pickers(session) });
  const loaded = (session: Session, start?: ReplayStart) => {
    const meta = {
      // A client that did not start the turn cannot know of it otherwise.
      ...(session.isBusy && { turn: { state: "running" } }),
      ...(start && { replayedAfter: start.id }),
    };
    return { ...pickers(session), ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  };
  const load = async (params: LoadSessionRequest, call: Call) => {
    const start = parseReplayAfter(params._meta);
    return loaded(await loadSession(acp, params, call, start), start);
  };
  const options = (session: Session) => ({ configOptions: createClientOptions(session, acp.client) });
  const row = new RowFactory<AgentRequestParamsByMethod, AgentNotificationParamsByMethod>(protocolParams);
  const requests = [
    row.request("initialize", (p) => initialize(acp, program, p)),

    row.request("authenticate", (p) => account.authenticate(p)),
    row.request("logout", () => account.logOut()),
    row.request("auth/status", () => account.status()),
    row.request("providers/list", () => account.listProviders()),
    row.request("providers/set", (p) => account.setProvider(p)),
    row.request("providers/disable", (p) => account.disableProvider(p)),

    row.request("session/new", (p, call) => newSession(acp, p, call).then(opened)),
    row.request("session/load", load),
    row.request("session/resume", async (p, call) => loaded(await resumeSession(acp, p, call))),
    row.request("session/fork", (p, call) => forkSession(acp, p, call).then(opened)),
    row.request("session/list", (p) => listSessions(acp, p)),
    row.request("session/close", (p) => closeSession(acp, p.sessionId)),
    row.request("session/delete", (p) => deleteSession(acp, p.sessionId)),
    row.request("session/set_title", (p, call) => setTitle(acp, p, call)),
    row.request("session/archive", (p) => setArchived(acp, p.sessionId, true)),
    row.request("session/unarchive", (p) => setArchived(acp, p.sessionId, false)),
    row.request("session/status", (p) => getStatus(acp, p.sessionId)),

    row.request("session/set_mode", (p, call) => changeMode(acp, p, call)),
    row.request("session/set_config_option", (p, call) => changeOption(acp, p, call, options)),
    row.extension("session/set_model", setModelParams, (p, call) => changeModel(acp, p, call)),

    row.request("session/prompt", (p, { signal }) => promptTurn(acp, p, signal)),
    row.extension("_session/steering", steeringParams, (p) => steer(acp, p.sessionId, p.prompt)),
    row.extension("_session/revoke_inject", revokeInjectionParams, (p) => revokeInjection(acp, p)),
    row.extension("_session/replace_inject", replaceInjectionParams, (p) => replaceInjection(acp, p)),
    row.extension("_session/rewind_points", rewindPointsParams, (p) => listRewindPoints(acp, p.sessionId)),
    row.extension("_session/rewind", rewindParams, (p, call) =>
      rewindSession(acp, p, call).then(({ answer }) => answer),
    ),
  ];
  const notifications = [row.notification("session/cancel", (p) => cancelTurn(acp, p.sessionId))];
  return { requests: new Map(requests), notifications: new Map(notifications), isStrict: false };
}

function initialize(acp: AcpConnection, program: ProgramInfo, params: InitializeRequest): InitializeResponse {
  acp.client = parseClientFeatures(params);
  return createInitializeResult(program, params);
}

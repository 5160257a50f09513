package sandbox

import "codemode-bridge/sandbox/wire"

// The operations of calls, as Call.Op has them.
const (
	OpTool     = wire.OpTool     // codemode.server__tool(args), codemode.search_tools(args)
	OpRaw      = wire.OpRaw      // codemode.raw(name, args)
	OpRead     = wire.OpRead     // codemode.read(handle, path): Args is {"handle":..., "path":...}
	OpEmit     = wire.OpEmit     // emit(handle): Args is {"handle":...}
	OpRun      = wire.OpRun      // codemode.run(name, input)
	OpResource = wire.OpResource // codemode.resources.<Name>(args)
	OpPrompt   = wire.OpPrompt   // codemode.prompts.<Name>(args)
	OpTimer    = wire.OpTimer    // setTimeout and the like: only a TimerHost gets these
)

// The limits that a LimitError can name.
const (
	LimitCPU         = wire.LimitCPU
	LimitWall        = wire.LimitWall
	LimitMemory      = wire.LimitMemory
	LimitRecursion   = wire.LimitRecursion
	LimitCalls       = wire.LimitCalls
	LimitTimers      = wire.LimitTimers
	LimitWaiting     = wire.LimitWaiting
	LimitSource      = wire.LimitSource
	LimitInput       = wire.LimitInput
	LimitArgs        = wire.LimitArgs
	LimitResult      = wire.LimitResult
	LimitTotalMemory = wire.LimitTotalMemory
)

// Engine names what scripts run in: see wire.Engine.
const Engine = wire.Engine

package rival

import (
	"slices"

	"github.com/ringlimit/ringlimit/bench/load"
)

// All is every contender, in the order of the table.
func All() []Entry {
	return slices.Concat(limitersInProcess(), insides(), oneServer(), twoOwners(), tenNodes(), services(), batches())
}

// limitersInProcess have the limiter in the caller's process.
func limitersInProcess() []Entry {
	lone := []load.Cell{{Callers: 1, Keys: "one"}, {Callers: 1, Keys: "uniform-1M"}}
	return []Entry{
		{Name: "ringlimit-owner", Kind: InProcess, Memory: true, Also: lone, What: "ringlimit: Node.Check of a counter that this node owns",
			make: func(l Limit) Rival { return &owner{limit: l} }},
		{Name: "x-time-rate", Kind: InProcess, Memory: true, Also: lone, What: "golang.org/x/time/rate, a limiter for each key in a sync.Map",
			make: func(l Limit) Rival { return &timeRate{limit: l} }},
		{Name: "throttled", Kind: InProcess, Memory: true, Also: lone, What: "throttled/v2 with its store in memory",
			make: func(l Limit) Rival { return &gcra{limit: l} }},
		{Name: "go-limiter", Kind: InProcess, Memory: true, Also: lone, What: "sethvargo/go-limiter with its store in memory",
			make: func(l Limit) Rival { return &goLimiter{limit: l} }},
		{Name: "ringlimit-denied", Kind: InProcess, Refused: true, Only: []load.Cell{{Callers: 1, Keys: "one"}, {Callers: 64, Keys: "one"}}, What: "ringlimit: a denial that the node remembers (deny cache)",
			make: func(Limit) Rival { return &denied{forward{fleet: fleet{limit: overNetwork}, owners: 2}} }},
	}
}

// insides have both ends of one hop in the worker's process.
func insides() []Entry {
	return []Entry{
		{Name: "ringlimit-inside", Kind: Inside, Narrow: true, What: "ringlimit: Node.Check that another node in this process decides; a gateway, an owner, no copies",
			make: func(l Limit) Rival { return &inside{limit: l} }},
		{Name: "tcp-inside", Kind: Inside, Narrow: true, What: "bare TCP with the same batching, both ends in this process",
			make: func(Limit) Rival { return &tcp{hop{inside: true, owners: 1}, nil} }},
		{Name: "unary-inside", Kind: Inside, Narrow: true, What: "plain grpc-go unary calls, both ends in this process",
			make: func(Limit) Rival { return &unary{hop{inside: true, owners: 1}, nil} }},
	}
}

// oneServer ask one process.
func oneServer() []Entry {
	hot := []load.Cell{{Callers: 64, Keys: "one"}}
	return []Entry{
		{Name: "ringlimit-forward-one", Kind: OneServer, Also: hot, What: "ringlimit: Node.Check that another process decides; a gateway, an owner, no copies",
			make: func(l Limit) Rival { return &forward{fleet: fleet{limit: l}, owners: 1} }},
		{Name: "tcp-one", Kind: OneServer, What: "bare TCP with the same batching, one owner",
			make: func(Limit) Rival { return &tcp{hop{owners: 1}, nil} }},
		{Name: "unary-one", Kind: OneServer, What: "plain grpc-go unary calls, one owner",
			make: func(Limit) Rival { return &unary{hop{owners: 1}, nil} }},
		{Name: "redis", Kind: OneServer, What: "Redis, a token bucket in Lua, one EVALSHA a check through go-redis",
			make: func(l Limit) Rival { return &redisSingle{redisServer{limit: l, pool: 64}} }},
		{Name: "redis-pipelined", Kind: OneServer, Memory: true, What: "the same, the checks of all callers in pipelines",
			make: func(l Limit) Rival {
				return &redisPipelined{redisServer: redisServer{limit: l, pool: unansweredPipelines}}
			}},
		{Name: "gubernator-embedded", Kind: OneServer, Also: hot, What: "gubernator: a node in this process, two in another",
			make: func(l Limit) Rival { return &gubernatorEmbedded{limit: l} }},
	}
}

// twoOwners ask two processes, each of its own keys.
func twoOwners() []Entry {
	hot := []load.Cell{{Callers: 64, Keys: "one"}}
	return []Entry{
		{Name: "ringlimit-forward", Kind: TwoOwners, Narrow: true, Also: hot, What: "ringlimit: Node.Check that another process decides; a gateway, two owners, no copies",
			make: func(l Limit) Rival { return &forward{fleet: fleet{limit: l}, owners: 2} }},
		{Name: "ringlimit-forward-auto", Kind: TwoOwners, Narrow: true, What: "the same with copies to a standby (durability: auto, the default)",
			make: func(l Limit) Rival { return &forward{fleet: fleet{limit: l}, owners: 2, tier: "auto"} }},
		{Name: "tcp", Kind: TwoOwners, Narrow: true, What: "bare TCP with the same batching, two owners",
			make: func(Limit) Rival { return &tcp{hop{owners: 2}, nil} }},
		{Name: "unary", Kind: TwoOwners, Narrow: true, What: "plain grpc-go unary calls, two owners",
			make: func(Limit) Rival { return &unary{hop{owners: 2}, nil} }},
	}
}

// tenNodes are ten nodes in the worker's process.
func tenNodes() []Entry {
	crowd := []load.Cell{{Callers: 1024, Keys: "uniform-10k"}}
	return []Entry{
		{Name: "ringlimit-ten", Kind: TenNodes, Only: crowd, What: "ten nodes of ringlimit in one process",
			make: func(l Limit) Rival { return &together{limit: l, n: 10} }},
		{Name: "mesh-ten", Kind: TenNodes, Only: crowd, What: "ten nodes of a unary gRPC mesh in one process",
			make: func(Limit) Rival { return &meshTogether{n: 10} }},
	}
}

// services are asked by a client, at three nodes.
func services() []Entry {
	tax := []load.Cell{{Callers: 64, Keys: "uniform-10k"}}
	return []Entry{
		{Name: "ringlimit-client", Kind: Service, What: "ringlimit: client/, one stream to each of three nodes",
			make: func(l Limit) Rival { return &streamClient{fleet: fleet{limit: l}} }},
		{Name: "ringlimit-grpc", Kind: Service, What: "ringlimit: unary gRPC Check into three nodes",
			make: func(l Limit) Rival { return &grpcService{fleet: fleet{limit: l}} }},
		{Name: "ringlimit-http", Kind: Service, What: "ringlimit: /v1/check into three nodes",
			make: func(l Limit) Rival { return &httpCheck{httpService{fleet: fleet{limit: l}}} }},
		{Name: "mesh", Kind: Service, What: "a unary gRPC mesh of three nodes",
			make: func(Limit) Rival { return &mesh{} }},
		{Name: "gubernator", Kind: Service, What: "gubernator: its client into three nodes",
			make: func(l Limit) Rival { return &gubernatorClient{limit: l} }},
		{Name: "grpc-owned", Kind: Service, Only: tax, What: "ringlimit: unary gRPC Check at the owner",
			make: func(l Limit) Rival { return &grpcTax{fleet: fleet{limit: l}} }},
		{Name: "grpc-forwarded", Kind: Service, Only: tax, What: "the same at a node that forwards it",
			make: func(l Limit) Rival { return &grpcTax{fleet: fleet{limit: l}, forwarded: true} }},
		{Name: "authorize-owned", Kind: Service, Only: tax, What: "ringlimit: /v1/authorize at the owner",
			make: func(l Limit) Rival { return &authorize{fleet: fleet{limit: l}} }},
		{Name: "authorize-forwarded", Kind: Service, Only: tax, What: "the same at a node that forwards it",
			make: func(l Limit) Rival { return &authorize{fleet: fleet{limit: l}, forwarded: true} }},
	}
}

// batches are asked for 1,000 checks at a time, at three nodes.
func batches() []Entry {
	batch := []load.Cell{{Callers: 8, Keys: "uniform-10k"}}
	return []Entry{
		{Name: "ringlimit-grpc-1000", Kind: Batched, Batch: 1000, Only: batch, What: "ringlimit: CheckBatch of 1,000 into three nodes",
			make: func(l Limit) Rival { return &grpcBatch{grpcService{fleet: fleet{limit: l}}} }},
		{Name: "ringlimit-http-1000", Kind: Batched, Batch: 1000, Only: batch, What: "ringlimit: /v1/checks of 1,000 into three nodes",
			make: func(l Limit) Rival { return &httpChecks{httpService{fleet: fleet{limit: l}}} }},
		{Name: "gubernator-1000", Kind: Batched, Batch: 1000, Only: batch, Memory: true, What: "gubernator: GetRateLimits of 1,000 into three nodes",
			make: func(l Limit) Rival { return &gubernatorClient{limit: l} }},
	}
}

"""The load study: Locust users over real WebSockets against the real server, whose model is a *simulated accelerator*.

`model` says how long the simulated accelerator takes, `accelerator` is the engine that a worker process loads,
`arrivals` and `framing` are what the users do and how they read, `users` is the Locust file, `policies` are the
configurations that are compared, `doors` two limits for them, `server` and `study` run one point of the plane,
`journal` and `pareto` keep and draw what came of it. Locust patches the process that imports it, so that only `users`
does, in an environment of its own (`make load`).
"""

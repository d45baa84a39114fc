// The stock gRPC-Web client for browsers, in Node.

import { task, play } from './stage.mjs';
import { scenarios, service } from './talk.mjs';

service.describe(task.descriptors);
await play(['@connectrpc/connect-web', '@bufbuild/protobuf'], scenarios);

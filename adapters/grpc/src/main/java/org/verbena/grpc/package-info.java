/** gRPC over RDMA: {@link org.verbena.grpc.VerbenaGrpc} has builders for servers and channels. */
package org.verbena.grpc;

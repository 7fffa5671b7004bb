/** Reactor Netty over RDMA: {@link org.verbena.reactor.RdmaLoopResources} has its event loops and channels. */
package org.verbena.reactor;

/**
 * Apache Ratis over RDMA: {@link org.verbena.ratis.RdmaRpcType} is the type of RPC to set, and {@link
 * org.verbena.ratis.RdmaConfigKeys} has its properties. Runs on the class path: Ratis' jars have packages in common,
 * and are no modules.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.ratis;

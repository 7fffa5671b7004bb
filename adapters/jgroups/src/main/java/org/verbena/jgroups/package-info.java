/**
 * A transport of JGroups: {@link org.verbena.jgroups.VERBENA}, named in JGroups' XML, carries a cluster's messages over
 * RDMA.
 */
@NullMarked
package org.verbena.jgroups;

import org.jspecify.annotations.NullMarked;

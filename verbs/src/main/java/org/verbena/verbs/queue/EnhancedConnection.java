package org.verbena.verbs.queue;

/**
 * Options that two adapters of one vendor agree on while connecting (enhanced connection establishment).
 *
 * <p>Source: ibv_query_ece(3), ibv_set_ece(3)
 *
 * @param vendorId the maker's IEEE OUI
 * @param options the maker's own
 */
public record EnhancedConnection(int vendorId, int options) {}
